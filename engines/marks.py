"""What happened when, for `-v` and `--timeline`: the engine's own events and those that a launcher tells on stderr."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING

from mpiboot.engines.inbox import LAUNCHER

if TYPE_CHECKING:
    from mpiboot.engines.output import Stream
    from mpiboot.engines.timeline import Event

# Asks `mpiboot launch` for its events, as lines of JSON in between its other lines.
ASK = {"MPIBOOT_EVENTS": "fd:2"}
START = b'{"t": '


class Marks:
    """Collects events; the job's clock starts when this is made."""

    def __init__(self, *, wanted: bool) -> None:
        self.wanted = wanted
        self._start = time.time()
        self._events: list[tuple[float, str, str]] = []
        self._first_output = False
        self._lock = threading.Lock()

    def mark(self, name: str, who: str, at: float | None = None) -> None:
        """An event that happens now, or `at` a time in seconds since 1970."""
        with self._lock:
            self._events.append((max(0.0, (at or time.time()) - self._start), name, who))

    def seen(self, who: str, stream: Stream, line: bytes) -> bool:
        """Whether a line of output is an event and not for the user. The launcher's first output is an event too."""
        if who != LAUNCHER:
            return False
        if stream == "out" and not self._first_output:
            self._first_output = True
            self.mark("first rank", who)
        if stream == "out" or not self.wanted or not line.startswith(START):
            return False
        try:
            told = json.loads(line)
            self.mark(str(told["event"]), str(told.get("who") or who), float(told["t"]))
        except (ValueError, KeyError, TypeError):
            return False
        return True

    def events(self) -> list[Event]:
        """All so far, by time."""
        from mpiboot.engines.timeline import Event  # only those who ask for it pay for it

        with self._lock:
            return [Event(name, who, at) for at, name, who in sorted(self._events)]
