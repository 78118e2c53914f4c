"""Directories of this machine that a job's processes see: the user's working directory, and those of --mount."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

# The path in the job's processes for a working directory whose own path the image needs for itself.
ELSEWHERE = "/workdir"
# An image needs these directories itself. What is below them can have its own path: /tmp/work, /root/work.
OF_IMAGES = frozenset({
    "/home", "/home/mpiuser", "/media", "/mnt", "/opt", "/root", "/run", "/srv", "/var", "/var/lib",
    "/tmp", "/var/tmp",  # noqa: S108 (no file is made there)
})  # fmt: skip
# The system with all that is below it: at its own path it would hide the image's programs.
SYSTEM = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys", "/usr")
READ_ONLY = {"ro": True, "rw": False}


@dataclass(frozen=True)
class Mount:
    """A file or directory of this machine, and the path at which the job's processes see it."""

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True)
class Directories:
    """What a job's processes see of this machine. They start in the `workdir`; None: where their image says."""

    workdir: Mount | None = None
    mounts: tuple[Mount, ...] = ()
    note: str = ""  # where the working directory is, if that is not its own path


def of_caller(mounts: Sequence[str] = (), *, workdir: bool = True) -> Directories:
    """What the command line asks for: `SRC:DST[:ro]` each, and the directory where the user is."""
    here, note = _working_directory() if workdir else (None, "")
    given = tuple(parsed(text) for text in mounts)
    places = [mount.target for mount in (*([here] if here else []), *given)]
    twice = next((place for place in places if places.count(place) > 1), None)
    if twice:
        raise UserError(f"--mount: two directories have the path {twice}; give each a path of its own")
    return Directories(here, given, note)


def parsed(text: str) -> Mount:
    """A value of --mount."""
    source, _, rest = text.partition(":")
    target, _, mode = rest.partition(":")
    if not source or not target or (mode or "rw") not in READ_ONLY:
        raise UserError(f"--mount takes SRC:DST or SRC:DST:ro, not {text!r}")
    place = PurePosixPath(target)
    if not place.is_absolute() or place == PurePosixPath("/") or ".." in place.parts:
        raise UserError(f"--mount {text}: {target} must be an absolute path below /, without `..`")
    return Mount(str(Path(source).absolute()), str(place), READ_ONLY[mode or "rw"])


def place_of(directory: PurePosixPath) -> str | None:
    """The path at which the job's processes see a working directory; None: they do not see it."""
    own = PurePosixPath("/")
    if directory == own or any(directory.is_relative_to(tree) for tree in SYSTEM):
        return None
    return ELSEWHERE if str(directory) in OF_IMAGES else str(directory)


def _working_directory() -> tuple[Mount | None, str]:
    try:
        here = Path.cwd()
    except OSError:
        raise UserError("the current directory is gone; cd to one that exists, or use --no-workdir") from None
    place = place_of(PurePosixPath(here))
    if place is None:
        return None, f"the job does not see the current directory, {here}: it is a part of this machine's system"
    note = f"the job sees {here} as {place}: its image needs {here} itself" if place != str(here) else ""
    return Mount(str(here), place), note
