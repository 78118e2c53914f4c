"""etcd and the API server: enough for everything that only reads and writes objects, up in 3 seconds."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from . import build, packages, ports, processes, versions
from .certificates import Authority, service_account_key
from .client import Client
from .errors import ClusterError
from .waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from .places import Home

LOOPBACK = "127.0.0.1"
SERVICES = "10.214.0.0/16"  # unlike what clusters and Docker take by default: it must not hide a real network
KUBERNETES_SERVICE = "10.214.0.1"
COMES_UP_WITHIN = 60.0  # seconds; 3 are usual, a busy machine needs more
TRIES = 3  # a free port may be gone by the time the server binds it


def provide() -> None:
    """Bring what it needs: the built API server, Debian's etcd."""
    packages.provide(packages.API)
    build.provide(*versions.SIZES["api"])  # what was compiled is kept: a whole node is built twice as fast with it


def missing() -> list[str]:
    """What `provide` would have to bring."""
    return [*packages.missing(packages.API), *(name for size in versions.SIZES["api"] for name in size.missing())]


def up(home: Home, *, dies_with_us: bool = False) -> None:
    """Start both on free ports of the loopback interface. In `dies_with_us` the kernel ends them with this process."""
    for left in reversed(range(TRIES)):
        home.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            # No controller makes service accounts here, so pods must be accepted without one; and the address
            # of the Service "kubernetes" would be the loopback interface, which endpoints may not name.
            start(home, Authority(home.certificates), LOOPBACK, "--disable-admission-plugins=ServiceAccount",
                  "--endpoint-reconciler-type=none", dies_with_us=dies_with_us).rename(home.kubeconfig)
        except ClusterError as error:
            down(home)
            if not left or "address already in use" not in str(error):
                raise
        else:
            return


def down(home: Home) -> None:
    """End both and remove the folder."""
    processes.end_all(home)
    shutil.rmtree(home.path, ignore_errors=True)


def start(home: Home, authority: Authority, address: str, *more: str, dies_with_us: bool = False) -> Path:
    """The administrator's kubeconfig of an etcd and an API server that listens on `address`: it answers.

    The file does not have its final name yet, as there may be more to start.
    """
    etcd_port, peer_port = ports.free(LOOPBACK, 2)
    api_port, = ports.free(address, 1)
    names = (LOOPBACK, "localhost", address, KUBERNETES_SERVICE, "kubernetes", "kubernetes.default",
             "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
    server = authority.issue("server", "mpiboot-test-server", names=names)
    processes.start(home, "etcd", _etcd(home, authority.certificate, server, etcd_port, peer_port),
                    dies_with_us=dies_with_us)
    processes.start(home, "kube-apiserver", [
        *_api_server(authority, server, etcd_port), f"--bind-address={address}", f"--advertise-address={address}",
        f"--secure-port={api_port}", *more], dies_with_us=dies_with_us)
    admin = authority.kubeconfig(home.kubeconfig.with_suffix(".new"), f"https://{address}:{api_port}",
                                 "mpiboot-admin", "system:masters")
    client = Client(admin)
    # The namespace "default" is made after the server calls itself ready.
    for path in ("/readyz", "/api/v1/namespaces/default"):
        wait_for(f"the API server's {path}", lambda path=path: client.get(path).status == 200,  # type: ignore[misc]
                 COMES_UP_WITHIN, meanwhile=lambda: processes.check(home))
    return admin


def _etcd(home: Home, authority: Path, server: tuple[Path, Path], port: int, peer_port: int) -> list[str]:
    certificate, key = map(str, server)
    return [
        "etcd", "--name=test", f"--data-dir={home.etcd}",
        f"--listen-client-urls=https://{LOOPBACK}:{port}", f"--advertise-client-urls=https://{LOOPBACK}:{port}",
        f"--listen-peer-urls=https://{LOOPBACK}:{peer_port}",
        f"--initial-advertise-peer-urls=https://{LOOPBACK}:{peer_port}",
        f"--initial-cluster=test=https://{LOOPBACK}:{peer_port}",
        # Who reaches etcd is root of the node, so other users of this machine must not.
        f"--cert-file={certificate}", f"--key-file={key}", f"--trusted-ca-file={authority}", "--client-cert-auth",
        f"--peer-cert-file={certificate}", f"--peer-key-file={key}", f"--peer-trusted-ca-file={authority}",
        "--peer-client-cert-auth",
        "--unsafe-no-fsync"]  # its data is thrown away anyway


def _api_server(authority: Authority, server: tuple[Path, Path], etcd_port: int) -> list[str]:
    certificate, key = server
    admin_certificate, admin_key = authority.issue("api-server", "mpiboot-api-server", "system:masters")
    accounts = service_account_key(authority.folder)
    return [
        versions.program("kube-apiserver"),
        f"--etcd-servers=https://{LOOPBACK}:{etcd_port}", f"--etcd-cafile={authority.certificate}",
        f"--etcd-certfile={certificate}", f"--etcd-keyfile={key}",
        f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}", f"--client-ca-file={authority.certificate}",
        f"--kubelet-client-certificate={admin_certificate}", f"--kubelet-client-key={admin_key}",
        "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={accounts}", f"--service-account-signing-key-file={accounts}",
        f"--service-cluster-ip-range={SERVICES}", "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true", "--profiling=false"]
