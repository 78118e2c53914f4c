"""A command at a terminal, as a user sees it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PATIENCE = 60.0


class Terminal:
    """Runs a command on a terminal of this size; `type` and `shows` are the user's hands and eyes. For `with`."""

    def __init__(self, argv: Sequence[str], rows: int, columns: int, env: Mapping[str, str] | None = None) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            argv, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, env=env
        )  # fmt: skip
        os.close(slave)
        self._seen = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def shows(self, text: str) -> None:
        """Return once it has shown a text."""
        deadline = time.monotonic() + PATIENCE
        while text not in self._seen:
            assert time.monotonic() < deadline, f"no {text!r} in {self._seen!r}"
            if select.select([self._master], [], [], 1)[0]:
                with suppress(OSError):  # the program has ended
                    self._seen += os.read(self._master, 4096).decode(errors="replace")

    def end(self) -> int:
        """The exit code of the command."""
        return self.process.wait(PATIENCE)
