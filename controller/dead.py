"""Dead workers: which of them make room for a new one now, and which are kept as evidence of what went wrong. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mpiboot.job import elastic

if TYPE_CHECKING:
    from mpiboot.controller.observe import Observed
    from mpiboot.controller.view_pod import PodView
    from mpiboot.job.model import Job

LONGEST_PAUSE = 60.0
QUIET = 300.0  # seconds after which a worker that dies counts as dying for the first time


@dataclass
class Losses:
    """How often and when workers were replaced, by index: one that dies again and again is replaced ever later."""

    _times: dict[int, tuple[int, float]] = field(default_factory=dict)

    def pause(self, index: int, now: float) -> float:
        """Seconds until the worker may be replaced; 0 for now."""
        count, last = self._times.get(index, (0, 0.0))
        if count == 0 or now - last > QUIET:
            return 0.0
        return max(0.0, last + min(2.0 ** (count - 1), LONGEST_PAUSE) - now)

    def replaced(self, index: int, now: float) -> None:
        count, last = self._times.get(index, (0, 0.0))
        self._times[index] = (1 if now - last > QUIET else count + 1, now)


@dataclass(frozen=True)
class Dead:
    """The dead workers of a job: those to be replaced now, and when to look at others again, in seconds."""

    all: tuple[PodView, ...] = ()
    replace: tuple[PodView, ...] = ()
    again: float | None = None


def dead(job: Job, seen: Observed, losses: Losses, now: float) -> Dead:
    """Elastic jobs go on, so they get a new worker at once. Others fail without it, and their dead explain why."""
    ended = tuple(pod for pod in seen.wanted_workers(job) if pod.ended)
    if not ended or job.run_policy.suspend:
        return Dead(ended)
    if elastic.of_job(job) is None:
        return Dead(ended, tuple(pod for pod in ended if no_longer_evidence(seen, pod)))
    pauses = {pod.index: losses.pause(pod.index, now) for pod in ended}
    later = [pause for pause in pauses.values() if pause]
    return Dead(ended, tuple(pod for pod in ended if not pauses[pod.index]), min(later, default=None))


def no_longer_evidence(seen: Observed, worker: PodView) -> bool:
    """Whether the launcher's attempt in which the worker died has ended, and another is allowed."""
    launcher = seen.launcher
    if launcher is None or launcher.outcome or launcher.failed > launcher.backoff_limit:
        return False
    pods = [pod for pod in seen.launcher_pods if not pod.meta.deleting]
    attempts = launcher.failed + sum(pod.restarts for pod in pods)
    over = all(pod.ended or not pod.started or pod.began > worker.ended_at for pod in pods)
    return 0 < attempts <= launcher.backoff_limit and over


def told(worker: PodView, *, replaced: bool) -> str:
    """What its user is told of a dead worker."""
    then = "it is replaced" if replaced else "its pod is kept until the launcher's attempt has ended"
    return f"worker-{worker.index} ended: {worker.why or worker.phase}; {then}"
