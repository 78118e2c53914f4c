"""The version of the MPI runtime in an image: asked from the image, because a Dockerfile only says what was wished."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    import docker

# Open MPI says: mpirun (Open MPI) 5.0.7; MPICH: Version:       5.0.2; Intel: Version 2021.19 Build 2026...
_VERSION = re.compile(r"(?:\(Open MPI\)|Version:?)\s+(\d+(?:\.\d+)+)")


ASK = ["mpirun", "--version"]


class VersionError(UserError):
    """An image does not say which MPI runtime it has."""


def runtime_version(engine: docker.DockerClient, tag: str) -> str:
    """What `mpirun --version` of the image says, without its words."""
    from docker.errors import DockerException

    try:
        output = engine.containers.run(tag, [], entrypoint=ASK, network_mode="none", remove=True, stderr=True)
    except DockerException as error:
        raise VersionError(f"{tag}: mpirun --version does not run: {str(error).strip().splitlines()[-1]}") from error
    text = output.decode(errors="replace")
    found = _VERSION.search(text)
    if not found:
        raise VersionError(f"{tag}: mpirun --version names no version: {text.strip()[:200]!r}")
    return found[1]
