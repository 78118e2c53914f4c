"""The container engine of this machine: a client of it, or one line why there is none."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from mpiboot.containers.endpoint import TLS_FILES, NoEngineError, endpoint

if TYPE_CHECKING:
    import docker

    from mpiboot.containers.endpoint import Endpoint

# Seconds. An engine that takes longer to answer counts as absent: users do not wait for a daemon that hangs.
ANSWER_WITHIN = 20.0


def connect(answer_within: float = ANSWER_WITHIN) -> docker.DockerClient:
    """A client of the engine that the user has chosen, or of the local one; it has answered once."""
    forced = os.environ.get("MPIBOOT_ENGINE", "docker")
    if forced != "docker":
        raise NoEngineError(f"this needs a Docker engine, and MPIBOOT_ENGINE={forced} forbids one; unset it")
    try:
        from docker.errors import DockerException
    except ImportError:
        text = "the Python package docker is missing; install it with: pip install docker"
        raise NoEngineError(text) from None
    where = endpoint()
    client = None
    try:
        client = _client(where, int(answer_within))
        client.ping()
    except DockerException as error:
        if client is not None:
            client.close()
        raise NoEngineError(f"no Docker engine answers at {where} ({_short(error)}); {_advice(error)}") from error
    if where.found:
        # The docker command line, which builds and publishes, looks for Docker's own socket only.
        os.environ["DOCKER_HOST"] = where.url
    return client


def _client(where: Endpoint, timeout: int) -> docker.DockerClient:
    import docker
    from docker.tls import TLSConfig

    if not where.source:  # DOCKER_TLS_VERIFY and DOCKER_CERT_PATH belong to DOCKER_HOST
        return docker.from_env(timeout=timeout, environment={**os.environ, "DOCKER_HOST": where.url})
    tls: TLSConfig | bool = False
    if folder := where.tls:
        ca, cert, key = (str(path) if (path := folder / name).exists() else None for name in TLS_FILES)
        tls = TLSConfig(ca_cert=ca, client_cert=(cert, key) if cert and key else None, verify=where.verify)
    return docker.DockerClient(base_url=where.url, tls=tls, timeout=timeout, use_ssh_client=where.by_ssh)


def docker_cli() -> str:
    """The path of the docker command line. Debian's own comes first: it always fits the engine beside it."""
    for candidate in ("/usr/bin/docker", shutil.which("docker")):
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    raise NoEngineError("the command 'docker' is missing; install it (Debian: docker-cli, or docker.io)")


def _advice(error: Exception) -> str:
    if isinstance(_cause(error), PermissionError):
        return "join the group docker (sudo usermod -aG docker $USER) and log in again, or set DOCKER_HOST"
    return "start it, or set DOCKER_HOST"


def _cause(error: Exception) -> BaseException:
    """The innermost cause: docker-py wraps a refused socket four times."""
    cause: BaseException = error
    while cause.__cause__ or cause.__context__:
        cause = cause.__cause__ or cause.__context__ or cause
    return cause


def _short(error: Exception) -> str:
    """The innermost cause in a few words."""
    cause = _cause(error)
    return str(cause).strip().splitlines()[0][:200] if str(cause).strip() else type(cause).__name__
