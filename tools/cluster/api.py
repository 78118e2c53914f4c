"""etcd and the API server, started in 3 seconds: enough for tests that only read and write objects."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from mpiboot.kube.blocking import Client

from . import build, packages, ports, processes, versions
from .certificates import Authority, service_account_key
from .errors import ClusterError
from .waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from .home import Home

LOOPBACK = "127.0.0.1"
SERVICES = "10.214.0.0/16"  # not a default of clusters or Docker, so that it does not hide a real network
KUBERNETES_SERVICE = "10.214.0.1"
COMES_UP_WITHIN = 60.0  # seconds; 3 are usual, a busy machine needs more
TRIES = 3  # another process may take a free port before the server binds it


def provide() -> None:
    """Build the API server and install Debian's etcd."""
    packages.provide(packages.API)
    build.provide(*versions.SIZES["api"])  # it keeps the compiled packages: with them a node builds twice as fast


def missing() -> list[str]:
    """What `provide` would build or install."""
    return [*packages.missing(packages.API), *(name for size in versions.SIZES["api"] for name in size.missing())]


def up(home: Home, *, dies_with_us: bool = False) -> None:
    """Start both on free loopback ports. With `dies_with_us` the kernel ends them when this process ends."""
    for left in reversed(range(TRIES)):
        home.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            # No controller makes service accounts here, so the server must accept pods without one. The Service
            # "kubernetes" would have the loopback interface as its address, which endpoints may not have.
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
    """Start etcd and an API server on `address`, wait until it answers, and return the administrator's kubeconfig.

    The file does not have its final name yet, because the caller may start more.
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
    client = Client.of(admin)
    # The server creates the namespace "default" only after /readyz succeeds.
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
        # Access to etcd gives root on the node, so other users of this machine must not have it.
        f"--cert-file={certificate}", f"--key-file={key}", f"--trusted-ca-file={authority}", "--client-cert-auth",
        f"--peer-cert-file={certificate}", f"--peer-key-file={key}", f"--peer-trusted-ca-file={authority}",
        "--peer-client-cert-auth",
        "--unsafe-no-fsync"]  # its data is deleted in the end anyway


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
