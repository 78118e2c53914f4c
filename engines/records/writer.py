"""Writes the record of a job while it runs. Any thread may call it. A disk that is full does not disturb the job."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from mpiboot.engines.inbox import LAUNCHER
from mpiboot.engines.records import record as records
from mpiboot.engines.records.bounded_log import BoundedLog
from mpiboot.engines.records.prune import make_room

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mpiboot.engines.records.record import Record

LAUNCHER_LIMIT = 16 * 2**20  # bytes of each of its two streams
WORKERS_LIMIT = 32 * 2**20  # bytes of all streams of all workers
LEAST = 65536  # bytes of a worker's stream
MOST_EVENTS = 10_000


class RecordWriter:
    """Nothing is written before the job is known and has begun: a job that cannot start leaves no record."""

    def __init__(self, *, keep: bool, note: Callable[[str], None]) -> None:
        """Without `keep` the record is removed at the end. `note` gets a line if the record cannot be written."""
        self._keep, self._note = keep, note
        self._record: Record | None = None
        self._directory: Path | None = None
        self._logs: dict[tuple[str, str], BoundedLog] = {}
        self._events: list[str] = []  # that are not written yet
        self._count = 0
        self._closed = False
        self._lock = threading.Lock()

    def set_job(self, record: Record) -> None:
        """From now on the job is known."""
        with self._lock:
            self._record = record

    def begin(self) -> str:
        """The job has begun; its name, or nothing for a job of which no record is made."""
        self._do(self._begin)
        return self._record.name if self._record else ""

    def output(self, process: str, stream: str, chunk: bytes) -> None:
        """Bytes that a process has printed."""

        def write() -> None:
            self._begin()
            assert self._directory
            assert self._record
            log = self._logs.get((process, stream))
            if log is None:
                path = self._directory / records.LOGS / f"{process}.{'out' if stream == 'out' else 'err'}"
                log = self._logs[process, stream] = BoundedLog(path, _limit(process, self._record.workers))
            log.write(chunk)

        self._do(write)

    def event(self, reason: str, process: str = "job", message: str = "", *, warning: bool = False,
              at: float | None = None) -> None:  # fmt: skip
        """Something that happened to a process, or to the job."""
        self._count += 1
        if self._count > MOST_EVENTS:
            return
        found = {"time": at or time.time(), "type": "Warning" if warning else "Normal", "reason": reason,
                 "object": process, "message": message}  # fmt: skip
        with self._lock:
            self._events.append(json.dumps(found) + "\n")
        if self._directory:
            self._do(self._write_events)

    def event_of_engine(self, name: str, process: str, at: float) -> None:
        """An event that the engine or the launcher has recorded."""
        if name == "done":  # `end` says how
            return
        self.event("".join(word.capitalize() for word in name.split()), process, at=at)

    def end(self, code: int, reason: str = "") -> None:
        """The job has ended, and all of it is removed."""
        text = f"exit code {code}{f': {reason}' if reason else ''}"
        self.event("Ended", message=text, warning=code != 0)
        self._do(lambda: self._end(code, reason))
        with self._lock:
            for log in self._logs.values():
                log.close()
            self._logs.clear()
            self._closed = True  # output that comes now has nowhere to go

    def _do(self, write: Callable[[], None]) -> None:
        problem = ""
        with self._lock:
            if self._closed or self._record is None:
                return
            try:
                write()
            except OSError as error:
                self._closed = True
                # Without a directory `mpiboot delete` or `prune` has removed it, and so nothing is missing.
                if self._directory is None or self._directory.exists():
                    problem = f"{error.strerror}{f': {error.filename}' if error.filename else ''}"
        if problem:  # without the lock, which another thread may want that holds the lock of the terminal
            self._note(f"warning: the output of this job is no longer kept: {problem}")

    def _begin(self) -> None:
        if self._directory:
            return
        assert self._record
        directory = records.directory_of(self._record.name, self._record.run)
        (directory / records.LOGS).mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.chmod(0o700)
        records.write(directory, self._record)
        self._directory = directory
        self._write_events()

    def _write_events(self) -> None:
        assert self._directory
        with (self._directory / records.EVENTS).open("a", encoding="utf-8") as file:
            file.write("".join(self._events))
        self._events.clear()

    def _end(self, code: int, reason: str) -> None:
        if self._directory is None:
            return
        if not self._keep:
            records.remove(self._directory)
            return
        assert self._record
        self._record = replace(self._record, ended=time.time(), exit_code=code, reason=reason)
        records.write(self._directory, self._record)
        make_room()


def _limit(process: str, workers: int) -> int:
    return LAUNCHER_LIMIT if process == LAUNCHER else max(LEAST, WORKERS_LIMIT // max(1, workers) // 2)
