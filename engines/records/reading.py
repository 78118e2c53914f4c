"""The records, as the commands on jobs read them."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from mpiboot.engines.inbox import LAUNCHER, process_name
from mpiboot.engines.jobs import JobEvent, JobInfo, no_such_process
from mpiboot.engines.records import record as records
from mpiboot.engines.records.bounded_log import OLD, LogReader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mpiboot.engines.output import Output, Stream
    from mpiboot.engines.records.record import Record

LOOK_EVERY = 0.2


def of_engine(engine: str) -> list[Record]:
    """The records of an engine's jobs, the newest first."""
    return [record for _, record in records.records() if record.engine == engine]


def directory_of(job: JobInfo) -> Path:
    return records.directory_of(job.name, job.run)


def events_of(job: JobInfo) -> list[JobEvent]:
    """The events in its record, by time."""
    events = []
    with suppress(OSError):
        text = (directory_of(job) / records.EVENTS).read_text("utf-8", "replace")
        for line in text.splitlines():
            with suppress(ValueError, TypeError):  # a line that is being written
                events.append(JobEvent(**json.loads(line)))
    return sorted(events, key=lambda event: event.time)


def write_output(job: JobInfo, output: Output, worker: int | None, *, until: Callable[[], bool]) -> None:
    """Write what its processes have printed, again and again until `until` holds; with `worker` only of that one."""
    if worker is not None and not 0 <= worker < job.workers:
        raise no_such_process(job, process_name("worker", worker))
    logs = directory_of(job) / records.LOGS
    readers: dict[Path, LogReader] = {}
    while True:
        last = until()  # before the reading: what is printed until then is written
        # The launcher's come last: the others explain them.
        for log in sorted(_logs(logs, worker), key=lambda log: (log.stem == LAUNCHER, log.name)):
            stream: Stream = "out" if log.suffix == ".out" else "err"
            for chunk in readers.setdefault(log, LogReader(log)).new():
                output.feed(log.stem if worker is None else LAUNCHER, stream, chunk)
        if last:
            break
        time.sleep(LOOK_EVERY)  # between two checks
    for reader in readers.values():
        reader.close()
    for process in {log.stem for log in readers}:
        output.finish(process if worker is None else LAUNCHER)


def _logs(directory: Path, worker: int | None) -> set[Path]:
    """The logs in a directory, each by the path of its newer file."""
    found = {log.with_suffix("") if log.suffix == OLD else log for log in directory.glob("*")}
    return found if worker is None else {log for log in found if log.stem == process_name("worker", worker)}
