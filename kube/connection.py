"""The address of the API server and the credentials for it: from a pod's service account, or from a kubeconfig."""

from __future__ import annotations

import os
import ssl
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REREAD_TOKEN_AFTER = 60.0  # seconds; the kubelet replaces a pod's token well before it ends


@dataclass(frozen=True)
class Connection:
    """All that a client needs. `headers` gives the ones that authorize a request, fresh each time."""

    server: str
    tls: ssl.SSLContext | None
    headers: Callable[[], Awaitable[Mapping[str, str]]]
    namespace: str  # where this process lives, or the kubeconfig's default
    proxy: str | None = None


async def connect(kubeconfig: str | None = None, context: str | None = None) -> Connection:
    """The connection of a kubeconfig if one is named (or $KUBECONFIG, or a context is), else of this pod's account."""
    named = kubeconfig or os.environ.get("KUBECONFIG")
    if not named and not context and "KUBERNETES_SERVICE_HOST" in os.environ and (SERVICE_ACCOUNT / "token").exists():
        return in_cluster()
    return await from_kubeconfig(named or "~/.kube/config", context)


def in_cluster(directory: Path = SERVICE_ACCOUNT) -> Connection:
    """The connection of a pod. Two files and two variables: no need for a library that takes 0.5 s to import."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    host = f"[{host}]" if ":" in host else host
    token = _Token(directory / "token")
    try:
        tls = _tls(str(directory / "ca.crt"))
        namespace = (directory / "namespace").read_text().strip()
    except OSError as error:
        reason = f"{directory} is not what Kubernetes mounts into pods: {_one_line(error)}"
        raise UserError(f"no cluster: {reason}; mount the pod's service account token, or set $KUBECONFIG") from None
    return Connection(f"https://{host}:{port}", tls, token.headers, namespace)


class _Token:
    """The token of a service account. The file changes while we run."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_at = 0.0
        self._text = ""

    async def headers(self) -> Mapping[str, str]:
        if not self._text or time.monotonic() - self._read_at > REREAD_TOKEN_AFTER:
            self._text = self._path.read_text().strip()
            self._read_at = time.monotonic()
        return {"authorization": f"Bearer {self._text}"}


async def from_kubeconfig(path: str, context: str | None = None) -> Connection:
    """The connection of a kubeconfig, with all its ways to log in."""
    from kubernetes_asyncio import client, config
    from yaml import YAMLError

    hint = "set $KUBECONFIG to the path of a kubeconfig; the operator also takes --kubeconfig"
    if not any(Path(part).expanduser().exists() for part in path.split(os.pathsep)):
        raise UserError(f"no cluster: there is no file {path}; {hint}")
    configuration: Any = client.Configuration()
    try:
        loader: Any = await config.load_kube_config(
            config_file=str(Path(path).expanduser()),
            context=context,
            client_configuration=configuration,
            persist_config=False,
        )
        current = loader.current_context["context"]
        server, namespace = configuration.host.rstrip("/"), current.get("namespace") or "default"
        if not server.startswith(("http://", "https://")):
            raise UserError(f"no cluster: {path}: the server {server!r} must start with https:// or http://; {hint}")
        tls = _configured(configuration)
    except (config.ConfigException, OSError) as error:  # OSError: also what the ssl module says of a certificate
        raise UserError(f"no cluster: {path}: {_one_line(error)}; {hint}") from None
    except (YAMLError, ValueError, TypeError, LookupError, AttributeError, AssertionError) as error:
        # The library reads the file without looking at its form: these are its ways to fail on another one.
        reason = _one_line(error) or type(error).__name__
        raise UserError(f"no cluster: {path} is not a kubeconfig: {reason}; {hint}") from None

    async def headers() -> Mapping[str, str]:
        settings: dict[str, Any] = await configuration.auth_settings()
        return {way["key"]: way["value"] for way in settings.values() if way["in"] == "header" and way["value"]}

    return Connection(server, tls, headers, namespace, configuration.proxy)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _tls(authority: str | None) -> ssl.SSLContext:
    """Verifies chain and host name with a cluster's authority; without one, with those that this machine trusts."""
    tls = ssl.create_default_context(cafile=authority)
    # From Python 3.13 on the default also demands what RFC 5280 wants of a certificate's form. The authorities of many
    # clusters (older EKS, MicroK8s) lack key identifiers, so no connection to them would be possible.
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return tls


def _configured(configuration: Any) -> ssl.SSLContext | None:  # noqa: ANN401 (a library without types)
    if not configuration.host.startswith("https"):
        return None
    tls = _tls(configuration.ssl_ca_cert)
    if configuration.cert_file:
        tls.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
    if not configuration.verify_ssl:
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    return tls
