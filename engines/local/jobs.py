"""Jobs of this machine, read from their state directories."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from mpiboot.engines.inbox import LAUNCHER
from mpiboot.engines.jobs import JobInfo
from mpiboot.engines.local import state
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

    from mpiboot.engines.output import Output, Stream

# Longer than the job's own grace: its `mpiboot run` removes everything before it ends.
ENDING_MAY_TAKE = 45.0
LOOK_EVERY = 0.2
CHUNK = 65536


class LocalJobs:
    """The jobs of this user on this machine."""

    where = ""

    def all(self) -> list[JobInfo]:
        return [
            JobInfo(
                name=record.job,
                engine="local",
                state="running" if record.alive else "left over",
                workers=record.workers,
                created=record.created,
                image="",
                run=str(record.pid),
            )
            for _, record in state.records()
        ]

    def logs(self, job: JobInfo, output: Output, *, follow: bool) -> None:
        directory = state.jobs_directory() / job.name
        read: dict[Path, int] = {}
        while True:
            record = state.read(directory)
            there = record is not None and str(record.pid) == job.run
            logs = (directory / state.LOGS).glob("*") if there else ()
            # The launcher's logs come last: the others explain them.
            for log in sorted(logs, key=lambda log: (log.stem == LAUNCHER, log.name)):
                _write(log, read, output)
            if not follow or record is None or not there or not record.alive:
                return
            time.sleep(LOOK_EVERY)

    def scale(self, job: JobInfo, workers: int) -> int:
        raise UserError(
            f"{job.name} runs as processes of this machine, which cannot become {workers} workers while they run; "
            "run it on containers: --engine docker"
        )

    def delete(self, job: JobInfo) -> None:
        directory = state.jobs_directory() / job.name
        record = state.read(directory)
        if record is None or str(record.pid) != job.run:
            return
        if record.alive:
            _end(record)
        state.remove(directory, record)


def _end(record: state.Record) -> None:
    with suppress(ProcessLookupError):
        os.kill(record.pid, signal.SIGTERM)
    deadline = time.monotonic() + ENDING_MAY_TAKE
    while record.alive:
        if time.monotonic() > deadline:
            raise UserError(
                f"the job {record.job} (process {record.pid}) did not end within {ENDING_MAY_TAKE:.0f} s of SIGTERM; "
                f"kill it, its processes end with it: kill -9 {record.pid}"
            )
        time.sleep(0.05)  # between two checks


def _write(log: Path, read: dict[Path, int], output: Output) -> None:
    stream: Stream = "out" if log.suffix == ".out" else "err"
    with suppress(OSError), log.open("rb") as file:
        file.seek(read.get(log, 0))
        while chunk := file.read(CHUNK):
            output.feed(log.stem, stream, chunk)
        read[log] = file.tell()
