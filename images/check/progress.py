"""What the check is doing, on one line of a terminal that rewrites itself; nothing where there is no terminal."""

from __future__ import annotations

import shutil
import threading
import time
from typing import IO


class Progress:
    """Called as `progress(who, what)` by any thread; `clear` leaves the terminal as it was."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._shown = stream.isatty()
        self._started = time.monotonic()
        self._doing: dict[str, str] = {}
        self._lock = threading.Lock()

    def __call__(self, who: str, what: str) -> None:
        with self._lock:
            self._doing[who] = what
            elapsed = time.monotonic() - self._started
            self._write(f"{elapsed:4.1f} s  " + "  ".join(f"{who}: {what}" for who, what in self._doing.items()))

    def clear(self) -> None:
        with self._lock:
            self._write("")
            self._shown = False  # threads that end late write nothing over the report

    def _write(self, line: str) -> None:
        if self._shown:
            self._stream.write("\r\033[K" + line[: shutil.get_terminal_size().columns - 1])
            self._stream.flush()
