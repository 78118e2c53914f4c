"""How an MPI job would start a worker of the image. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.job import sshd

if TYPE_CHECKING:
    from mpiboot.images.check.image import Image


def entrypoint(image: Image, key_directory: str) -> list[str] | None:
    """The command that replaces the image's own; None where its entrypoint is `mpiboot worker`.

    A job starts sshd itself in every other image, whatever CMD says, because only so the job's host key comes first.
    """
    return None if image.is_ours else sshd.command(key_directory, verify=True)


def described(image: Image) -> str:
    """The same in a few words."""
    return "the image's entrypoint started sshd" if image.is_ours else "/usr/sbin/sshd -De, as a job starts it"
