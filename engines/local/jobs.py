"""Jobs of this machine, read from their state directories."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mpiboot.engines.inbox import LAUNCHER, process_name
from mpiboot.engines.jobs import JobInfo, JobStatus, Process
from mpiboot.engines.local import state
from mpiboot.engines.local.guarded_process import GUARD
from mpiboot.engines.records.reading import events_of, write_output
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpiboot.engines.jobs import JobEvent
    from mpiboot.engines.output import Output

# Longer than the job's own grace: its `mpiboot run` removes everything before it ends.
ENDING_MAY_TAKE = 45.0


class LocalJobs:
    """The jobs of this user on this machine. Their output and their events are in their records."""

    where = ""

    def all(self) -> list[JobInfo]:
        return [
            JobInfo(
                name=record.job,
                engine="local",
                state="running" if record.alive else "left-over",
                workers=record.workers,
                created=record.created,
                image="",
                run=record.run,
            )
            for _, record in state.records()
        ]

    def again(self, job: JobInfo) -> JobInfo | None:
        return next((found for found in self.all() if found.run == job.run), None)

    def status(self, job: JobInfo) -> JobStatus:
        record = state.read(state.jobs_directory() / job.name)
        pids = _guards(record) if record else {}
        wanted = [LAUNCHER, *(process_name("worker", index) for index in range(job.workers))]
        processes = tuple(
            Process(name, "running", id=str(pids[name])) if name in pids else Process(name, "ended")
            for name in wanted
        )
        return JobStatus(job, job.outcome, processes, ())

    def events(self, job: JobInfo) -> list[JobEvent]:
        return events_of(job)

    def logs(self, job: JobInfo, output: Output, *, follow: bool, worker: int | None = None) -> None:
        write_output(job, output, worker, until=lambda: not follow or not self._runs(job))

    def shell(self, job: JobInfo, process: str, command: Sequence[str]) -> int:  # noqa: ARG002 (the contract's)
        raise UserError(
            f"{job.name} runs as processes of this machine, so this shell is where {process} runs; "
            f"`mpiboot status {job.name}` lists the processes"
        )

    def scale(self, job: JobInfo, workers: int, warn: Callable[[str], None]) -> int:  # noqa: ARG002 (the contract)
        raise UserError(
            f"{job.name} runs as processes of this machine, which cannot become {workers} workers while they run; "
            "run it on containers: --engine docker"
        )

    def _runs(self, job: JobInfo) -> bool:
        now = self.again(job)
        return now is not None and not now.has_ended

    def delete(self, job: JobInfo) -> None:
        directory = state.jobs_directory() / job.name
        record = state.read(directory)
        if record is None or record.run != job.run:
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


def _guards(record: state.Record) -> dict[str, int]:
    """The process numbers of the guards of a job's processes."""
    found = {}
    with suppress(OSError):
        children = Path(f"/proc/{record.pid}/task").glob("*/children")
        for pid in (int(word) for path in children for word in path.read_text("ascii").split()):
            with suppress(OSError, ValueError):
                words = Path(f"/proc/{pid}/cmdline").read_text("utf-8", "replace").split("\0")
                options = words[words.index(GUARD) + 1 : words.index("--")]  # LIFELINE SCRATCH [HOST]
                host = options[2] if len(options) > 2 else ""
                found[host.removeprefix(f"{record.job}-") or LAUNCHER] = pid
    return found
