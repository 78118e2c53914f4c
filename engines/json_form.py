"""What `-o json` prints. The form is documented in docs/how-to/jobs.md: keys may be added, and none changes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mpiboot.engines.status_text import utc

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mpiboot.engines.jobs import JobEvent, JobInfo, JobStatus

VERSION = 1


def jobs(found: Iterable[JobInfo]) -> str:
    return _document(jobs=[_job(job) for job in found])


def job(found: JobInfo | None) -> str:
    return _document(job=_job(found) if found else None)


def status(found: JobStatus, *, lines: bool = False) -> str:
    """With `lines` in one line: one of several documents."""
    processes = [
        {
            "name": each.name, "state": each.state, "ready": each.ready, "exitCode": each.exit_code,
            "restarts": each.restarts, "id": each.id, "host": each.host, "reason": each.reason,
        }
        for each in found.processes
    ]  # fmt: skip
    timeline = [{"time": utc(when), "event": what} for when, what in found.timeline]
    return _document(lines=lines, job=_job(found.job), summary=found.summary, processes=processes, timeline=timeline)


def events(found: JobInfo, happened: Iterable[JobEvent]) -> str:
    listed = [
        {
            "time": utc(each.time), "type": each.type, "reason": each.reason, "object": each.object,
            "message": each.message, "count": each.count,
        }
        for each in happened
    ]  # fmt: skip
    return _document(job=_job(found), events=listed)


def _job(found: JobInfo) -> dict[str, Any]:
    return {
        "name": found.name, "engine": found.engine, "namespace": found.namespace, "run": found.run,
        "state": found.state, "exitCode": found.exit_code, "reason": found.reason, "workers": found.workers,
        "image": found.image, "created": utc(found.created), "ended": None if found.ended is None else utc(found.ended),
    }  # fmt: skip


def _document(*, lines: bool = False, **content: object) -> str:
    return json.dumps({"version": VERSION, **content}, indent=None if lines else 2)
