"""The events of a job with their times, for `-v` and `--timeline`: the engine's own, and the launcher's from stderr."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.engines.timeline.events import Event

# With this variable `mpiboot launch` writes its events to stderr, as lines of JSON in between its other lines.
EVENTS_ON_STDERR = {"MPIBOOT_EVENTS": "fd:2"}
EVENT_START = b'{"t": '


class EventRecorder:
    """Collects events. Their clock starts when the recorder is made."""

    def __init__(self, *, wanted: bool) -> None:
        self.wanted = wanted
        self.on_event: Callable[[str, str, float], None] = lambda *_: None  # name, process, seconds since 1970
        self._start = time.time()
        self._events: list[tuple[float, str, str]] = []
        self._first_output = False
        self._lock = threading.Lock()

    def record(self, name: str, process: str, at: float | None = None) -> None:
        """Add an event that happens now, or `at` a time in seconds since 1970."""
        at = at or time.time()
        with self._lock:
            self._events.append((max(0.0, at - self._start), name, process))
        self.on_event(name, process, at)

    def record_output(self, process: str) -> None:
        """Add an event for the launcher's first output on stdout."""
        if not self._first_output:
            self._first_output = True
            self.record("first rank", process)

    def take(self, process: str, line: bytes) -> bool:
        """Add the event in a line of the launcher's stderr. Returns whether there is one: then users do not see it."""
        if not self.wanted or not line.startswith(EVENT_START):
            return False
        try:
            event = json.loads(line)
            self.record(str(event["event"]), str(event.get("who") or process), float(event["t"]))
        except (ValueError, KeyError, TypeError):
            return False
        return True

    def events(self) -> list[Event]:
        """All events up to now, by time."""
        from mpiboot.engines.timeline.events import Event  # most jobs need no timeline

        with self._lock:
            return [Event(name, process, at) for at, name, process in sorted(self._events)]
