"""The docker command line of one build: what the engine is given of this machine, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import mpiboot
from mpiboot.containers import docker_cli

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.images.matrix import Image

PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy")
CERTIFICATES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")
LABEL = "dev.mpiboot"


def build(
    context: Path, tag: str, arguments: Mapping[str, str], stage: str | None = None, *, again: bool = False
) -> list[str]:
    """The command that builds `tag` from an assembled context; `again` runs every step, whatever was built before."""
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
    """The command that gives an image labels which only a look into it could tell. Its Dockerfile comes on stdin."""
    return [docker_cli(), "build", "--quiet", "--tag", tag, *_each("--label", labels), "-"]


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """The variables of a build. buildx, where it is, builds in the engine itself, whatever builder the user has chosen.

    Another one leaves no image in the engine, and finds none there: neither a base of the user's nor our own drafts.
    """
    return {**given, "DOCKER_BUILDKIT": "1", "BUILDX_BUILDER": "default"}


def stages(row: Image, native: str, base: str) -> dict[str, str]:
    """The build arguments that lead through the Dockerfile to `row`."""
    ways = {"RUNTIME": row.runtime, "ACCEL": row.accel, "KIND": row.kind}
    return {"NATIVE": native, "BASE": base, **ways, **row.arguments}


def target(row: Image) -> str | None:
    """The stage where the build ends, if it is not the last one."""
    return None if row.runs_mpi else row.kind


def labels(row: Image, base: str, version: str) -> dict[str, str]:
    """Who made the image and of what; the keys without our prefix are OCI's."""
    oci = "org.opencontainers.image"
    return {
        f"{oci}.title": row.name,
        f"{oci}.description": describe(row, version),
        f"{oci}.version": version,
        f"{oci}.vendor": "mpiboot",
        f"{oci}.base.name": base,
        f"{LABEL}.version": mpiboot.__version__,
        f"{LABEL}.runtime": row.runtime,
        f"{LABEL}.accel": row.accel,
        f"{LABEL}.kind": row.kind,
    }


def describe(row: Image, version: str) -> str:
    said = f"{row.runtime} {version} with SSH for MPI jobs; accelerator: {row.accel}, kind: {row.kind}"
    return row.description or said


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
