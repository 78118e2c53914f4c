"""Reads files of other programs with a limit of size, and writes keys and configuration into private directories.

The directories work where only /tmp is writable.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from mpiboot.job.errors import UserError

# A hostfile of 1,000 workers has 50 kB, a known_hosts of a whole site a few MB.
MOST = 16 * 1024 * 1024


def read_text(path: str, *, strict: bool = False) -> str:
    """The text of a file. Raises OSError, also for a file that is larger than MOST: `/dev/zero` has no end.

    `strict`: raise UnicodeDecodeError for a file that is not UTF-8, instead of replacing characters.
    """
    with open(path, encoding="utf-8", errors="strict" if strict else "replace") as file:
        text = file.read(MOST + 1)
    if len(text) > MOST:
        raise OSError(errno.EFBIG, f"it is larger than {MOST >> 20} MiB", path)
    return text


def read_regular(path: str) -> str:
    """The text of a regular file. Raises OSError for others: opening a named pipe could block for ever."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not os.path.isfile(descriptor):
            raise OSError(errno.EINVAL, "it is not a regular file", path)
    finally:
        os.close(descriptor)
    return read_text(path)


def fresh_directory(kind: str, *, traversable: bool = False) -> str:
    """A new directory that only this user can list. `traversable`: other users may open files in it by name."""
    base = next((path for path in _bases() if os.access(path, os.W_OK | os.X_OK)), None)
    if base is None:
        raise UserError(f"cannot write anywhere ({', '.join(_bases())}); mount an emptyDir or a tmpfs on /tmp")
    path = f"{base}/mpiboot-{kind}-{os.getpid()}-{os.urandom(4).hex()}"
    os.mkdir(path, 0o700)
    if traversable:
        os.chmod(path, 0o711)  # noqa: S103 (other users may pass through)
    return path


def own_directory(path: str) -> bool:
    """Make the directory, or take it if this user owns it. False: it belongs to another user, or is a file."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        status = os.lstat(path)
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            return False
        os.chmod(path, 0o700)
    return True


def write(path: str, text: str, mode: int = 0o600) -> None:
    """Write a new file, then put it in the place of the old one: readers see one text or the other, never a part."""
    beside = f"{path}.{os.getpid()}.new"
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        os.chmod(beside, mode)
        os.replace(beside, path)
    except OSError as error:  # a full disk: the error of a write names no file
        with suppress(OSError):
            os.unlink(beside)
        raise OSError(error.errno, error.strerror, path) from error


def remove_directory(path: str) -> None:
    """Remove the directory and its files. What cannot be removed stays: nothing depends on it."""
    # By hand: shutil takes 8 ms to import, at a moment when ranks could start.
    with suppress(OSError):
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    remove_directory(entry.path)
                else:
                    os.unlink(entry.path)
        os.rmdir(path)


def is_plain_path(path: str) -> bool:
    """Whether the path is absolute, and has no character that PATH, ssh or an MPI would misread."""
    return path.startswith("/") and all(c.isalnum() or c in "/._-+=@,~" for c in path)


def _bases() -> tuple[str, ...]:
    chosen = os.environ.get("TMPDIR", "")
    return (*((chosen,) if is_plain_path(chosen) else ()), "/tmp", "/dev/shm", "/var/tmp")  # noqa: S108 (mkdir is exclusive)
