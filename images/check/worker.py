"""The command by which an MPI job starts a worker of the image. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.job.plan import sshd

if TYPE_CHECKING:
    from mpiboot.images.check.image import Image


def entrypoint(image: Image, key_directory: str) -> list[str] | None:
    """The command that replaces the image's own; None where its entrypoint is `mpiboot worker`.

    A job starts sshd itself in every other image, whatever CMD says, because only then the job's host key comes first.
    """
    return None if image.is_ours else sshd.command(key_directory, verify=True, needs=sshd.Needs(image.name))


def description(image: Image) -> str:
    """The start of the worker, in a few words."""
    return "the image's entrypoint started sshd" if image.is_ours else "/usr/sbin/sshd -De, as a job starts it"
