"""How long a job may still run, and how long a launcher stays that the operator ended.

The time that a launcher waits for its workers counts: a late launcher has the rest of its job's time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mpiboot.kube.clock import seconds_between, seconds_since
from mpiboot.kube.conditions import is_finished

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.controller.observe import Observed
    from mpiboot.job.model import Job
    from mpiboot.kube.job_projection import JobView

LATE = 5.0  # seconds; a launcher that starts later than this did not start with its job


@dataclass
class Stopwatch:
    """How long ago the times in a status were. The wall clock counts once for each time, a steady clock after that:
    a wall clock that jumps must not end jobs.
    """

    _first: dict[str, tuple[float, float]] = field(default_factory=dict)

    def since(self, text: str) -> float:
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        if text not in self._first:
            if len(self._first) > 1:
                self._first.clear()  # a job that was suspended and resumed has another start
            self._first[text] = (max(0.0, seconds_since(text)), now)
        seconds, at = self._first[text]
        return seconds + now - at


def until_overdue(job: Job, seen: Observed, since: Callable[[str], float]) -> float | None:
    """Seconds until the operator has to end the job; None: never. Never 0, which would mean no further look.

    `since`: seconds since a time in the status.
    """
    status, launcher = seen.view.raw.get("status") or {}, seen.launcher
    # An edit does not change a launcher that exists.
    limit = launcher.deadline if launcher else job.run_policy.active_deadline_seconds
    start = status.get("startTime")
    if limit is None or not start or job.run_policy.suspend or is_finished(status):
        return None
    if launcher and (launcher.outcome or begun_together(start, launcher)):
        return None
    return max(0.001, limit - since(start))


def until_removed(job: Job, seen: Observed, since: Callable[[str], float]) -> float | None:
    """Seconds until the operator deletes a launcher that it ended. That Job is only suspended, so it has no TTL."""
    status, ttl = seen.view.raw.get("status") or {}, job.run_policy.ttl_seconds_after_finished
    ended = status.get("completionTime")
    if ttl is None or not seen.launcher or seen.launcher.outcome or not is_finished(status) or not ended:
        return None
    return max(0.001, ttl - since(ended))


def is_over(left: float | None) -> bool:
    return left is not None and left <= 0.001


def begun_together(start: str, launcher: JobView) -> bool:
    """Whether the Job controller ends the launcher in time: it counts from the start of the Job."""
    return bool(launcher.started) and seconds_between(start, launcher.started) < LATE
