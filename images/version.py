"""The version of what is in an image: asked from the image, because a Dockerfile only says what was wished."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import mpiboot
from mpiboot.images.matrix import HOROVOD
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    import docker

    from mpiboot.images.matrix import Image

# Open MPI says: mpirun (Open MPI) 5.0.7; MPICH: Version:       5.0.2; Intel: Version 2021.19 Build 2026...
_VERSION = re.compile(r"(?:\(Open MPI\)|Version:?)\s+(\d+(?:\.\d+)+)")
ASK = ["mpirun", "--version"]
ASK_HOROVOD = ["python3", "-c", "import importlib.metadata as m; print('Version', m.version('horovod'))"]


class VersionError(UserError):
    """An image does not say which version it has of what it is for."""


def version(engine: docker.DockerClient, row: Image, tag: str) -> str:
    """The version of Horovod where it is in, else of the MPI runtime; an image without one has ours."""
    if not row.runs_mpi:
        return mpiboot.__version__
    return _answer(engine, tag, ASK_HOROVOD if row.kind.startswith(HOROVOD) else ASK)


def _answer(engine: docker.DockerClient, tag: str, question: list[str]) -> str:
    from docker.errors import DockerException

    words = " ".join(question[:2])
    try:
        output = engine.containers.run(tag, [], entrypoint=question, network_mode="none", remove=True, stderr=True)
    except DockerException as error:
        raise VersionError(f"{tag}: {words} does not run: {str(error).strip().splitlines()[-1]}") from error
    text = output.decode(errors="replace")
    found = _VERSION.search(text)
    if not found:
        raise VersionError(f"{tag}: {words} names no version: {text.strip()[:200]!r}")
    return found[1]
