"""The version of the software in an image. Only the image knows it: a Dockerfile says what should be in it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import mpiboot
from mpiboot.images.build.one_command import output_of
from mpiboot.images.matrix import HOROVOD
from mpiboot.job import mpi
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    import docker

    from mpiboot.images.matrix import Image

_HOROVOD_SAYS = r"Version (\S+)"
_NUMBERS = re.compile(r"\d+(?:\.\d+)+")
ASK = ["mpirun", "--version"]
ASK_HOROVOD = ["python3", "-c", "import importlib.metadata as m; print('Version', m.version('horovod'))"]


def version(engine: docker.DockerClient, row: Image, tag: str) -> str:
    """The version of Horovod if the image has it, else of the MPI runtime; without a runtime, mpiboot's version."""
    if not row.runs_mpi:
        return mpiboot.__version__
    question = ASK_HOROVOD if row.kind.startswith(HOROVOD) else ASK
    text = _answer(engine, tag, question)
    found = version_in(text)
    if not found:
        raise UserError(f"{tag}: {' '.join(question[:2])} prints no version: {text.strip()[:200]!r}")
    return found


def version_in(text: str) -> str:
    """The version in the output of ASK or ASK_HOROVOD, in the form for a tag; empty if there is none."""
    installed = mpi.identify(text)
    horovod = re.search(_HOROVOD_SAYS, text)
    printed = installed.version if installed else horovod[1] if horovod else ""
    numbers = _NUMBERS.match(printed)
    return numbers[0] if numbers else ""


def _answer(engine: docker.DockerClient, tag: str, question: list[str]) -> str:
    from docker.errors import DockerException

    try:
        return output_of(engine, tag, question)
    except DockerException as error:
        why = str(error).strip().splitlines()[-1]
        raise UserError(f"{tag}: {' '.join(question[:2])} does not run: {why}") from error
