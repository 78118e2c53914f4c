"""The user's terminal while a program elsewhere uses it: every key goes there as it is, and it knows the size."""

from __future__ import annotations

import os
import signal
import sys
import termios
import threading
import tty
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHUNK = 65536
# bash where the image has one.
SHELL = ("sh", "-c", "command -v bash > /dev/null && exec bash || exec sh")


def is_there() -> bool:
    """Whether stdin and stdout are a terminal."""
    return sys.stdin is not None and os.isatty(0) and os.isatty(1)


@contextmanager
def lent(resize: Callable[[int, int], object]) -> Iterator[None]:
    """While this lasts the terminal passes keys on, Ctrl-C too. `resize` gets rows and columns, also when they change.

    Without a terminal nothing happens.
    """
    if not is_there():
        yield
        return

    def changed(*_: object) -> None:
        columns, rows = os.get_terminal_size(0)
        resize(rows, columns)

    settings = termios.tcgetattr(0)
    before = signal.signal(signal.SIGWINCH, changed)
    try:
        changed()
        tty.setraw(0, termios.TCSADRAIN)  # what was typed ahead is kept
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, settings)
        signal.signal(signal.SIGWINCH, before)


def copy_stdin(write: Callable[[bytes], object], close: Callable[[], object]) -> None:
    """Pass stdin on, in a thread of its own, until it ends or the other side reads no more."""

    def copy() -> None:
        with suppress(OSError):
            while chunk := os.read(0, CHUNK):
                write(chunk)
        with suppress(OSError):
            close()

    threading.Thread(target=copy, name="stdin", daemon=True).start()


def show(fd: int, data: bytes) -> None:
    """Write all of it. OSError if the reader is gone."""
    while data:
        data = data[os.write(fd, data) :]
