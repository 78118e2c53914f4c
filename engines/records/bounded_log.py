"""A log file of limited size: it keeps the end, where the cause of a failure stands.

A log that is full becomes `NAME.old`, in place of the one before, and a new file begins. So the two hold at least
half of the limit, and never more than the limit.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO

CHUNK = 65536
OLD = ".old"


class BoundedLog:
    """The writing end."""

    def __init__(self, path: Path, limit: int) -> None:
        self._path, self._half = path, limit // 2
        self._fd = self._opened()
        self._size = os.fstat(self._fd).st_size

    def write(self, data: bytes) -> None:
        """Append. Raises OSError if the disk is full, or the directory gone."""
        while data:
            room = self._half - self._size
            if room <= 0:
                self._turn()
                continue
            written = os.write(self._fd, data[:room])
            self._size += written
            data = data[written:]

    def close(self) -> None:
        os.close(self._fd)

    def _turn(self) -> None:
        self._path.replace(old_of(self._path))
        os.close(self._fd)
        self._fd, self._size = self._opened(), 0

    def _opened(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


class LogReader:
    """The reading end: each call gives what came since the last one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None  # held open: its inode is not given to another file

    def new(self) -> Iterator[bytes]:
        """What was written since. What the writer has dropped meanwhile is missing."""
        while self._file or self._open_next():
            assert self._file
            turned = not self._is(self._path)  # looked at before reading: what is written until then is read now
            while chunk := self._file.read(CHUNK):
                yield chunk
            if not turned or not self._open_next():
                return

    def close(self) -> None:
        if self._file:
            self._file.close()
            self._file = None

    def _open_next(self) -> bool:
        """Open the file that follows the one read last: the old one, unless that was it, else the current one."""
        old = old_of(self._path)
        for path in [self._path] if self._file and self._is(old) else [old, self._path]:
            with suppress(OSError):
                following = path.open("rb", buffering=0)
                self.close()
                self._file = following
                return True
        return False

    def _is(self, path: Path) -> bool:
        """Whether the file that is open has this path."""
        assert self._file
        with suppress(OSError):
            return os.path.samestat(os.fstat(self._file.fileno()), path.stat())
        return False


def old_of(path: Path) -> Path:
    """The file with what was written before."""
    return path.with_name(path.name + OLD)
