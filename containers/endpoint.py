"""Where the container engine of this machine listens: by a variable, the chosen Docker context, or a usual socket.

The order is that of the docker command line: DOCKER_HOST, DOCKER_CONTEXT, then what `docker context use` has chosen.
Without any of them it is the first usual socket that this user may use, so that rootless Docker is found. Podman's
sockets are not among them: jobs do not start there yet.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SOCKET = "/var/run/docker.sock"
TLS_FILES = ("ca.pem", "cert.pem", "key.pem")


class NoEngineError(UserError):
    """No container engine answers."""


@dataclass(frozen=True)
class Endpoint:
    """`source` says why this one. `found`: mpiboot chose the socket, and the docker command line does not know of it.

    `tls` is a folder with certificates, for a context that has them.
    """

    url: str
    source: str = ""
    found: bool = False
    tls: Path | None = None
    verify: bool = True

    def __str__(self) -> str:
        return f"{self.url} ({self.source})" if self.source else self.url

    @property
    def by_ssh(self) -> bool:
        return self.url.startswith("ssh:")


def endpoint(environ: Mapping[str, str] | None = None) -> Endpoint:
    """Where the engine listens."""
    environ = os.environ if environ is None else environ
    if host := environ.get("DOCKER_HOST"):
        return Endpoint(host)
    folder = Path(environ.get("DOCKER_CONFIG") or Path(environ.get("HOME") or "/") / ".docker")
    name = environ.get("DOCKER_CONTEXT")
    source = f"DOCKER_CONTEXT={name}"
    if not name:
        name = _current(folder)
        source = f"the Docker context {name}, which {folder / 'config.json'} chooses"
    if name and name != "default":
        return _of_context(folder, name, source)
    return _usual(environ)


def _usual(environ: Mapping[str, str]) -> Endpoint:
    """The first usual socket that this user may use, or else the first one."""
    for path in _sockets(environ):
        if os.access(path, os.W_OK):
            return Endpoint(f"unix://{path}", found=path != SOCKET)
    return Endpoint(f"unix://{SOCKET}")


def _sockets(environ: Mapping[str, str]) -> Iterator[str]:
    """Docker's, and rootless Docker's."""
    yield SOCKET
    if own := environ.get("XDG_RUNTIME_DIR"):
        yield f"{own}/docker.sock"


def _current(folder: Path) -> str:
    """The context that `docker context use` has chosen; empty if none. docker ignores a broken file, too."""
    try:
        found = json.loads((folder / "config.json").read_text())
    except (OSError, ValueError):
        return ""
    return str(found.get("currentContext") or "") if isinstance(found, dict) else ""


def _of_context(folder: Path, name: str, source: str) -> Endpoint:
    digest = hashlib.sha256(name.encode()).hexdigest()  # docker names the folders of a context so
    file = folder / "contexts" / "meta" / digest / "meta.json"
    try:
        data: Any = json.loads(file.read_text())
        docker = data["Endpoints"]["docker"]
        url = str(docker["Host"])
    except FileNotFoundError:
        text = f"{source}: there is no such context; `docker context ls` lists them, `docker context use` chooses one"
        raise NoEngineError(text) from None
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise NoEngineError(f"{source}: cannot read where its engine is in {file} ({error!r})") from None
    tls = folder / "contexts" / "tls" / digest / "docker"
    return Endpoint(url, source, tls=tls if tls.is_dir() else None, verify=not docker.get("SkipTLSVerify"))
