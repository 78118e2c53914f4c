"""Clusters whose certificate authority lacks key identifiers, as older EKS and MicroK8s have them.

Python 3.13 and newer refuse such an authority by default. Here the tests ask older Pythons for that default; the image
of the operator has it.
"""

from __future__ import annotations

import asyncio
import datetime
import io
import ipaddress
import ssl
import tarfile
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
import yaml
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mpiboot.kube.api import Api, Request
from mpiboot.kube.api_error import UnreachableError
from mpiboot.kube.connection import SERVICE_ACCOUNT, Connection, from_kubeconfig, in_cluster

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    import docker
    from docker.models.containers import Container

PATIENCE = 60.0


@dataclass(frozen=True)
class Authority:
    """A certificate authority without key identifiers. It signs certificates without them, too."""

    name: x509.Name
    key: ec.EllipticCurvePrivateKey
    pem: bytes

    def issue(self, host: str) -> bytes:
        """A server's certificate and key."""
        key = ec.generate_private_key(ec.SECP256R1())
        try:
            name: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
        except ValueError:
            name = x509.DNSName(host)
        names = x509.SubjectAlternativeName([name])
        made = _unsigned("server", self.name, key).add_extension(names, critical=False).sign(self.key, hashes.SHA256())
        return made.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )


def authority(name: str) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        _unsigned(name, subject, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Authority(subject, key, certificate.public_bytes(serialization.Encoding.PEM))


def _unsigned(name: str, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )


@pytest.fixture(scope="module")
def old() -> Authority:
    return authority("an old cluster")


@pytest.fixture
def as_python_313(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default context of Python 3.13 and newer, also on older ones."""
    default = ssl.create_default_context

    def strict(*arguments: str, **options: str | None) -> ssl.SSLContext:
        context = default(*arguments, **options)  # type: ignore[arg-type]
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)


def account(folder: Path, trusted: Authority) -> Path:
    """What the kubelet gives a pod of a cluster whose authority this is."""
    (folder / "ca.crt").write_bytes(trusted.pem)
    (folder / "token").write_text("the token")
    (folder / "namespace").write_text("default\n")
    return folder


async def asked(folder: Path, certificate: bytes, connection: Callable[[int], Awaitable[Connection]]) -> str:
    """What the client gets from a server with this certificate."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    (folder / "server.pem").write_bytes(certificate)
    tls.load_cert_chain(folder / "server.pem")

    async def version(_: web.Request) -> web.Response:
        return web.json_response({"gitVersion": "v1.30.0"})

    app = web.Application()
    app.router.add_get("/version", version)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    try:
        async with asyncio.timeout(PATIENCE), Api(await connection(runner.addresses[0][1])) as api:
            return str((await api.send(Request("GET", "/version")))["gitVersion"])
    finally:
        await runner.cleanup()


@pytest.fixture
def in_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Authority, bytes], str]:
    """What a pod gets that trusts an authority, from a server with a certificate."""

    def ask(trusted: Authority, certificate: bytes) -> str:
        async def connection(port: int) -> Connection:
            monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
            monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(port))
            return in_cluster(account(tmp_path, trusted))

        return asyncio.run(asked(tmp_path, certificate, connection))

    return ask


@pytest.mark.usefixtures("as_python_313")
def test_the_default_of_python_313_refuses_such_an_authority(old: Authority, tmp_path: Path) -> None:
    async def connection(port: int) -> Connection:
        async def headers() -> dict[str, str]:
            return {}

        account(tmp_path, old)
        tls = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
        return Connection(f"https://127.0.0.1:{port}", tls, headers, "default")

    with pytest.raises(UnreachableError, match=r"Missing .* Key Identifier"):
        asyncio.run(asked(tmp_path, old.issue("127.0.0.1"), connection))


@pytest.mark.usefixtures("as_python_313")
def test_a_pod_accepts_an_authority_without_key_identifiers(
    old: Authority, in_pod: Callable[[Authority, bytes], str]
) -> None:
    assert in_pod(old, old.issue("127.0.0.1")) == "v1.30.0"


@pytest.mark.usefixtures("as_python_313")
def test_a_pod_refuses_another_authority(old: Authority, in_pod: Callable[[Authority, bytes], str]) -> None:
    with pytest.raises(UnreachableError, match="CERTIFICATE_VERIFY_FAILED"):
        in_pod(old, authority("an old cluster").issue("127.0.0.1"))


@pytest.mark.usefixtures("as_python_313")
def test_a_pod_refuses_a_certificate_of_another_host(old: Authority, in_pod: Callable[[Authority, bytes], str]) -> None:
    with pytest.raises(UnreachableError, match=r"certificate is not valid for '127\.0\.0\.1'"):
        in_pod(old, old.issue("127.0.0.2"))


@pytest.mark.usefixtures("as_python_313")
def test_a_kubeconfig_accepts_an_authority_without_key_identifiers(old: Authority, tmp_path: Path) -> None:
    async def connection(port: int) -> Connection:
        (tmp_path / "ca.crt").write_bytes(old.pem)
        cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(tmp_path / "ca.crt")}
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "old",
            "clusters": [{"name": "old", "cluster": cluster}],
            "users": [{"name": "user", "user": {"token": "the token"}}],
            "contexts": [{"name": "old", "context": {"cluster": "old", "user": "user"}}],
        }  # fmt: skip
        (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
        return await from_kubeconfig(str(tmp_path / "kubeconfig"))

    assert asyncio.run(asked(tmp_path, old.issue("127.0.0.1"), connection)) == "v1.30.0"


# An API server that holds nothing, as much of it as an operator asks before it says that it leads.
EMPTY_CLUSTER = textwrap.dedent("""
    import json, ssl, time
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    FIXED = {
        "/version": {"major": "1", "minor": "30", "gitVersion": "v1.30.0"},
        "/apis/kubeflow.org/v2beta1": {"resources": [{"name": "mpijobs"}]},
    }

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            path, _, query = self.path.partition("?")
            if "watch=1" in query:
                time.sleep(600)
            if "/leases/" in path:
                return self.answer(404, {"kind": "Status", "code": 404, "reason": "NotFound"})
            return self.answer(200, FIXED.get(path, {"metadata": {"resourceVersion": "1"}, "items": []}))

        def answer(self, status, content):
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 6443), Handler)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain("/tmp/server.pem")
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    server.serve_forever()
""")
STRICT = "import ssl, sys; print(bool(ssl.create_default_context().verify_flags & ssl.VERIFY_X509_STRICT))"


@pytest.fixture
def pod(docker_engine: docker.DockerClient, image: Callable[[str], str], old: Authority) -> Iterator[Container]:
    """A container of the operator's image on a cluster of its own, which has such an authority."""
    environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "6443", "PYTHONUNBUFFERED": "1"}
    container = docker_engine.containers.create(
        image("operator"), entrypoint=["python3", "/tmp/cluster.py"], network_mode="none", environment=environment
    )
    try:
        files = {
            "/tmp/cluster.py": EMPTY_CLUSTER.encode(),
            "/tmp/server.pem": old.issue("127.0.0.1"),
            f"{SERVICE_ACCOUNT}/ca.crt": old.pem,
            f"{SERVICE_ACCOUNT}/token": b"the token",
            f"{SERVICE_ACCOUNT}/namespace": b"default",
        }
        container.put_archive("/", _archive(files))
        container.start()
        yield container
    finally:
        container.remove(force=True)


def _archive(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def test_the_image_of_the_operator_starts_there(pod: Container) -> None:
    assert pod.exec_run(["python3", "-c", STRICT]).output == b"True\n", "this Python does not verify strictly"
    script = (
        "mpiboot operator --no-leader-election --checkin-port=0 2>/tmp/log & operator=$!; "
        "until grep '\"leading\"' /tmp/log; do kill -0 $operator || { cat /tmp/log; exit 1; }; sleep 0.2; done"
    )
    code, output = pod.exec_run(["timeout", str(int(PATIENCE)), "sh", "-c", script])
    assert code == 0, output
