"""How long a job may still take, and how long what we ended stays.

A launcher that came late has what is left of its job's time: what it waited for counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.controller.clock import seconds_between, seconds_since
from mpiboot.controller.status import is_finished

if TYPE_CHECKING:
    from mpiboot.controller.observe import Observed
    from mpiboot.controller.view_job import JobView
    from mpiboot.job.model import Job

LATE = 5.0  # seconds after which a launcher did not begin with its job


def until_overdue(job: Job, seen: Observed) -> float | None:
    """Seconds until it is for us to end the job. Never 0: that would mean no wish to look again."""
    status, launcher = seen.view.raw.get("status") or {}, seen.launcher
    # An edit does not reach a launcher that is there.
    limit = launcher.deadline if launcher else job.run_policy.active_deadline_seconds
    start = status.get("startTime")
    if limit is None or not start or job.run_policy.suspend or is_finished(status):
        return None
    if launcher and (launcher.outcome or begun_together(start, launcher)):
        return None
    return max(0.001, limit - seconds_since(start))


def until_removed(job: Job, seen: Observed) -> float | None:
    """Seconds until a launcher goes that we ended. The Job is only held, and for such the cluster counts no TTL."""
    status, ttl = seen.view.raw.get("status") or {}, job.run_policy.ttl_seconds_after_finished
    if ttl is None or not seen.launcher or seen.launcher.outcome or not is_finished(status):
        return None
    return max(0.001, ttl - seconds_since(status["completionTime"]))


def is_over(left: float | None) -> bool:
    return left is not None and left <= 0.001


def begun_together(start: str, launcher: JobView) -> bool:
    """Whether the Job controller ends the launcher in time: it counts from the Job's own start."""
    return bool(launcher.started) and seconds_between(start, launcher.started) < LATE
