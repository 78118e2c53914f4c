"""The docker command line of one build, with all that the engine gets from this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import mpiboot
from mpiboot.containers.client import docker_cli
from mpiboot.job.job_annotations import PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.images.matrix import Image

PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy")
CERTIFICATES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")


def build(
    context: Path, tag: str, arguments: Mapping[str, str], stage: str | None = None, *, again: bool = False
) -> list[str]:
    """The command that builds `tag` from an assembled context; `again` runs every step, without the cache."""
    return [
        *[docker_cli(), "build", "--progress=plain", "--tag", tag],
        *(["--target", stage] if stage else []),
        *(["--no-cache"] if again else []),
        *_each("--build-arg", {**arguments, **proxies(os.environ)}),
        *(["--network=host"] if proxy_is_local(os.environ) else []),
        *secrets(os.environ),
        str(context),
    ]


def relabel(tag: str, labels: Mapping[str, str]) -> list[str]:
    """The command that adds labels whose values only the built image knows. It reads its Dockerfile on stdin."""
    return [docker_cli(), "build", "--quiet", "--tag", tag, *_each("--label", labels), "-"]


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """The variables of a build. They make buildx build in the engine, not in a builder that the user chose.

    Another builder leaves no image in the engine, and finds no image there: no base of the user, none of our drafts.
    """
    return {**given, "DOCKER_BUILDKIT": "1", "BUILDX_BUILDER": "default"}


def stages(row: Image, native: str, base: str) -> dict[str, str]:
    """The build arguments that choose the stages of `row` in the Dockerfile."""
    chosen = {"RUNTIME": row.runtime, "ACCEL": row.accel, "KIND": row.kind}
    return {"NATIVE": native, "BASE": base, **chosen, **row.arguments}


def target(row: Image) -> str | None:
    """The stage where the build ends, if it is not the last one."""
    return None if row.runs_mpi else row.kind


def labels(row: Image, base: str, version: str) -> dict[str, str]:
    """The image's labels: its maker, base and version. OCI defines the keys without our prefix."""
    oci = "org.opencontainers.image"
    return {
        f"{oci}.title": row.name,
        f"{oci}.description": describe(row, version),
        f"{oci}.version": version,
        f"{oci}.vendor": "mpiboot",
        f"{oci}.base.name": base,
        f"{PREFIX}version": mpiboot.__version__,
        f"{PREFIX}runtime": row.runtime,
        f"{PREFIX}accel": row.accel,
        f"{PREFIX}kind": row.kind,
    }


def describe(row: Image, version: str) -> str:
    default = f"{row.runtime} {version} with SSH for MPI jobs; accelerator: {row.accel}, kind: {row.kind}"
    return row.description or default


def secrets(environment: Mapping[str, str]) -> list[str]:
    """The certificates that this machine trusts, for the steps that download; a secret never becomes a layer."""
    for path in (environment.get("SSL_CERT_FILE"), *CERTIFICATES):
        if path and Path(path).is_file() and os.access(path, os.R_OK):
            return ["--secret", f"id=ca,src={path}"]
    return []


def proxies(environment: Mapping[str, str]) -> dict[str, str]:
    """Docker leaves these arguments out of the image's history and of the cache's keys, so they need no ARG."""
    names = [*PROXIES, *map(str.upper, PROXIES)]
    return {name: environment[name] for name in names if environment.get(name)}


def proxy_is_local(environment: Mapping[str, str]) -> bool:
    """Whether a proxy listens on this machine's loopback, which a build reaches only from the host's network."""
    hosts = {urlsplit(url).hostname or "" for name, url in proxies(environment).items() if name.lower() != "no_proxy"}
    return any(host == "localhost" or host == "::1" or host.startswith("127.") for host in hosts)


def _each(option: str, values: Mapping[str, str]) -> list[str]:
    return [word for key, value in values.items() for word in (option, f"{key}={value}")]
