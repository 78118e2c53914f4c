"""Directories of our own for keys and configuration, where nobody else can write; /tmp alone may be writable."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from mpiboot.job.errors import UserError


def fresh(kind: str, *, traversable: bool = False) -> str:
    """A new directory only this user can list. `traversable`: others may open files in it whose names they know."""
    base = next((path for path in _bases() if os.access(path, os.W_OK | os.X_OK)), None)
    if base is None:
        raise UserError(f"cannot write anywhere ({', '.join(_bases())}); mount an emptyDir or a tmpfs on /tmp")
    path = f"{base}/mpiboot-{kind}-{os.getpid()}-{os.urandom(4).hex()}"
    os.mkdir(path, 0o700)
    if traversable:
        os.chmod(path, 0o711)  # noqa: S103 (that is what it is for)
    return path


def own(path: str) -> bool:
    """Make this directory, or take it if it is ours already. False: it belongs to somebody else."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            return False
        os.chmod(path, 0o700)
    except OSError:
        return False
    return True


def write(path: str, text: str, mode: int = 0o600) -> None:
    """Write beside the target, then replace it: readers see the old text or the new one, whole."""
    beside = f"{path}.{os.getpid()}.new"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(beside, mode)
    os.replace(beside, path)


def remove(path: str) -> None:
    """Remove the directory and what is in it; what cannot be removed stays, since nothing depends on it."""
    # By hand: shutil takes 8 ms to import, at a moment when ranks could start.
    with suppress(OSError):
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    remove(entry.path)
                else:
                    os.unlink(entry.path)
        os.rmdir(path)


def _bases() -> tuple[str, ...]:
    chosen = os.environ.get("TMPDIR", "")
    return (*((chosen,) if chosen.startswith("/") else ()), "/tmp", "/dev/shm", "/var/tmp")  # noqa: S108 (mkdir is exclusive)
