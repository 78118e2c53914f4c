"""The jobs of an engine of this machine: those that are there, and those of which only a record is left."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from mpiboot.engines.jobs import JobInfo, JobStatus
from mpiboot.engines.records import record as records
from mpiboot.engines.records.reading import directory_of, events_of, of_engine, write_output
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpiboot.engines.jobs import JobEvent, Jobs, State
    from mpiboot.engines.output import Output
    from mpiboot.engines.records.record import Record


class RecordedJobs:
    """An engine's jobs together with the records of this user."""

    where = ""

    def __init__(self, engine: str, jobs: Jobs | None) -> None:
        """Without `jobs` the engine does not answer."""
        self._engine, self._jobs = engine, jobs

    def all(self) -> Sequence[JobInfo]:
        there = self._jobs.all() if self._jobs else []
        # Records are read after the jobs: one that ends in between has its record then.
        kept = {record.run: record for record in of_engine(self._engine)}
        runs = {job.run for job in there}
        gone = [job_of(record) for record in kept.values() if record.run not in runs]
        return sorted([*(_refined(job, kept.get(job.run)) for job in there), *gone], key=lambda job: job.name)

    def again(self, job: JobInfo) -> JobInfo | None:
        there = self._jobs.again(job) if self._jobs else None
        record = records.read(directory_of(job))
        if there:
            return _refined(there, record)
        return job_of(record) if record else None

    def status(self, job: JobInfo) -> JobStatus:
        now = self.again(job) or job
        there = self._there(job)
        found = replace(there.status(job), job=now) if there else JobStatus(now, "", (), ())
        timeline = tuple((event.time, _in_words(event)) for event in events_of(job)) or found.timeline
        reason = f": {now.reason}" if now.reason else ""
        return replace(found, summary=f"{now.outcome}{reason}", timeline=timeline)

    def events(self, job: JobInfo) -> Sequence[JobEvent]:
        there = self._there(job)
        return events_of(job) or (there.events(job) if there else [])

    def logs(self, job: JobInfo, output: Output, *, follow: bool, worker: int | None = None) -> None:
        if there := self._there(job):
            there.logs(job, output, follow=follow, worker=worker)
        else:
            write_output(job, output, worker, until=lambda: True)

    def shell(self, job: JobInfo, process: str, command: Sequence[str]) -> int:
        return self._running(job, "there is nowhere to run a command").shell(job, process, command)

    def delete(self, job: JobInfo) -> None:
        if there := self._there(job):
            there.delete(job)
        records.remove(directory_of(job))

    def scale(self, job: JobInfo, workers: int, warn: Callable[[str], None]) -> int:
        return self._running(job, "it cannot be scaled").scale(job, workers, warn)

    def _there(self, job: JobInfo) -> Jobs | None:
        """The engine's jobs, if this one is still among them."""
        return self._jobs if self._jobs and self._jobs.again(job) else None

    def _running(self, job: JobInfo, so: str) -> Jobs:
        if there := self._there(job):
            return there
        raise UserError(f"{job.name} has ended ({job.outcome}), so {so}")


def _refined(job: JobInfo, record: Record | None) -> JobInfo:
    """A job whose launcher has ended goes on while its `mpiboot run` does: it starts the launcher again, or removes."""
    return replace(job, state="running", exit_code=None) if job.has_ended and record and record.alive else job


def job_of(record: Record) -> JobInfo:
    """The job of which this record is."""
    state: State = "running"
    if record.ended is not None:
        state = "failed" if record.exit_code else "succeeded"
    elif not record.alive:
        state = "left-over"
    return JobInfo(
        name=record.name, engine=record.engine, state=state, workers=record.workers, created=record.created,
        image=record.image, run=record.run, ended=record.ended, exit_code=record.exit_code, reason=record.reason,
    )  # fmt: skip


def _in_words(event: JobEvent) -> str:
    words = re.sub(r"(?<!^)([A-Z])", r" \1", event.reason).lower()
    what = words if event.object == "job" else f"{event.object} {words}"
    message = event.message.partition("\n")[0]
    return message if event.reason == "Message" else f"{what}: {message}" if message else what
