"""What `mpiboot status` prints of a job: how it stands, what is missing and why, and what happened when."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mpiboot.engines.jobs import JobStatus, Process

SHOWN = 20  # processes that are listed one by one


def status_text(status: JobStatus) -> str:
    return "\n".join([head(status), *_processes(status), *_timeline(status)])


def head(status: JobStatus) -> str:
    """The first line."""
    job = status.job
    return f"{job.namespace}/{job.name}: {status.summary}" if job.namespace else (
        f"{job.name} ({job.engine}): {status.summary}")  # fmt: skip


def _processes(status: JobStatus) -> Iterator[str]:
    if status.job.has_ended:
        return
    listed = status.processes
    if len(listed) > SHOWN:
        listed = tuple(process for process in listed if _trouble(process))
    width = max((len(process.name) for process in listed), default=0)
    for process in listed[:SHOWN]:
        why = _trouble(process)
        yield f"  {process.name:<{width}}  {process.state}{f': {why}' if why else ''}  ({_place(process)})"
    if len(listed) > SHOWN:
        yield f"  and {len(listed) - SHOWN} more"


def _place(process: Process) -> str:
    return " on ".join(part for part in (process.id, process.host) if part)


def _trouble(process: Process) -> str:
    if process.state == "ended":
        code = "" if process.exit_code is None else f"exit code {process.exit_code}"
        return ": ".join(part for part in (code, process.reason) if part)
    waits = process.ready is False and process.name != "launcher"
    return process.reason or ("not ready yet" if waits else "")


def _timeline(status: JobStatus) -> Iterator[str]:
    yield "timeline (UTC):"
    for when, what in status.timeline:
        yield f"  {utc(when).replace('T', ' ').removesuffix('Z')}  {what}"


def utc(seconds: float) -> str:
    """A time since 1970 as text: 2026-01-02T03:04:05Z."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
