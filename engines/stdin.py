"""The stdin of `mpiboot run`, copied to the launcher: rank 0 reads it, as with mpirun."""

from __future__ import annotations

import fcntl
import os
import select
import stat
import sys
import termios
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK = 65536
LOOK_EVERY = 0.5  # seconds between two checks whether we are in the foreground again


class Sink(Protocol):
    """Where the bytes go."""

    def write(self, data: bytes) -> object:
        """All of them; waits until the reader has taken them. Raises OSError if it takes no more."""

    def close(self) -> None:
        """The reader gets end of file."""


class Stdin:
    """Copies a descriptor to the stdin of the launcher.

    Only its first start receives it: the next one gets end of file, as the bytes that the first has read are gone.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._terminal = os.isatty(fd)
        self._used = False

    def copy_to(self, sink: Sink) -> None:
        """Start to copy, in a thread of its own. It ends with the input, or when the launcher reads no more."""
        work: Callable[[], None] = sink.close if self._used else lambda: self._copy(sink)
        self._used = True
        threading.Thread(target=work, name="stdin", daemon=True).start()

    def _copy(self, sink: Sink) -> None:
        try:
            while chunk := self._read():
                sink.write(chunk)
        except OSError:
            pass  # the launcher has ended or closed its stdin, or ours cannot be read
        finally:
            with suppress(OSError):
                sink.close()

    def _read(self) -> bytes:
        while True:
            select.select([self._fd], [], [])
            if not self._terminal or os.tcgetpgrp(self._fd) == os.getpgrp():
                return os.read(self._fd, CHUNK)
            # In the background: the input is the shell's, and reading it would stop us.
            time.sleep(LOOK_EVERY)


def has_input() -> bool:
    """Whether stdin is a file with bytes in it, or a pipe in which bytes wait."""
    try:
        found = os.fstat(0)
        if stat.S_ISREG(found.st_mode):
            return found.st_size > 0
        return stat.S_ISFIFO(found.st_mode) and bool(select.select([0], [], [], 0)[0]) and _waiting(0) > 0
    except OSError:
        return False


def _waiting(fd: int) -> int:
    """The number of bytes that can be read at once."""
    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), sys.byteorder)


def of_this_process() -> Stdin | None:
    """Our own stdin; None if it is closed or /dev/null: then the launcher's is /dev/null, too."""
    if sys.stdin is None or os.path.samestat(os.fstat(0), Path(os.devnull).stat()):
        return None
    return Stdin(0)
