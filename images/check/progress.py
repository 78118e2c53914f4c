"""Shows the current steps of the check on one changing line of a terminal; prints nothing without a terminal."""

from __future__ import annotations

import shutil
import threading
import time
from typing import IO


class Progress:
    """Any thread calls `progress(part, step)`; `clear` removes the line."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._shown = stream.isatty()
        self._started = time.monotonic()
        self._steps: dict[str, str] = {}
        self._lock = threading.Lock()

    def __call__(self, part: str, step: str) -> None:
        with self._lock:
            self._steps[part] = step
            elapsed = time.monotonic() - self._started
            self._write(f"{elapsed:4.1f} s  " + "  ".join(f"{part}: {step}" for part, step in self._steps.items()))

    def clear(self) -> None:
        with self._lock:
            self._write("")
            self._shown = False  # threads that end late write nothing over the report

    def _write(self, line: str) -> None:
        if self._shown:
            self._stream.write("\r\033[K" + line[: shutil.get_terminal_size().columns - 1])
            self._stream.flush()
