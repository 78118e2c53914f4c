"""Dead workers: which of them the operator replaces now, and which it keeps as evidence of a failure. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mpiboot.job import elastic, restarts
from mpiboot.kube.clock import seconds_between

if TYPE_CHECKING:
    from mpiboot.controller.observe import Observed
    from mpiboot.job.model import Job
    from mpiboot.kube.pod_projection import PodView

LONGEST_PAUSE = 60.0
CLOCKS_DIFFER = 10.0  # seconds; those of several API servers
QUIET = 300.0  # seconds without a death after which the count of a worker's deaths begins again


@dataclass
class Losses:
    """How often and when workers were replaced, by index. The pause before a replacement grows with each death."""

    _times: dict[int, tuple[int, float]] = field(default_factory=dict)

    def pause(self, index: int, now: float) -> float:
        """Seconds until the operator may replace the worker; 0: now."""
        count, last = self._times.get(index, (0, 0.0))
        if count == 0 or now - last > QUIET:
            return 0.0
        return max(0.0, last + min(2.0 ** (count - 1), LONGEST_PAUSE) - now)

    def replaced(self, index: int, now: float) -> None:
        count, last = self._times.get(index, (0, 0.0))
        self._times[index] = (1 if now - last > QUIET else count + 1, now)


@dataclass(frozen=True)
class Dead:
    """The dead workers of a job, those to replace now, and in how many seconds to look at the others again."""

    all: tuple[PodView, ...] = ()
    replace: tuple[PodView, ...] = ()
    again: float | None = None


def dead(job: Job, seen: Observed, losses: Losses, now: float, *, in_place: bool = False) -> Dead:
    """An elastic job goes on and gets a new worker at once, as does one whose launcher restarts its command. Another
    job fails, and its dead workers explain why. `in_place`: the launcher runs mpiboot.
    """
    ended = tuple(pod for pod in seen.wanted_workers(job) if pod.ended)
    if not ended or job.run_policy.suspend:
        return Dead(ended)
    if elastic.of_job(job) is None and not (in_place and restarts.of_job(job)):
        return Dead(ended, tuple(pod for pod in ended if no_longer_evidence(seen, pod)))
    pauses = {pod.index: losses.pause(pod.index, now) for pod in ended}
    later = [pause for pause in pauses.values() if pause]
    return Dead(ended, tuple(pod for pod in ended if not pauses[pod.index]), min(later, default=None))


def no_longer_evidence(seen: Observed, worker: PodView) -> bool:
    """Whether the launcher's attempt in which the worker died has ended, and another attempt is allowed."""
    launcher = seen.launcher
    if launcher is None or launcher.outcome or launcher.failed > launcher.backoff_limit:
        return False
    pods = [pod for pod in seen.launcher_pods if not pod.meta.deleting]
    attempts = launcher.failed + sum(pod.restarts for pod in pods)
    over = all(pod.ended or not pod.started or pod.began > worker.ended_at for pod in pods)
    return 0 < attempts <= launcher.backoff_limit and over


def with_other_keys(seen: Observed, keys_since: str) -> tuple[PodView, ...]:
    """Workers from before the time at which the job's Secret was made again with other keys.

    A launcher that has started has the old keys, too: its attempt goes on with these workers.
    """
    if not keys_since or any(pod.started and not pod.ended for pod in seen.launcher_pods):
        return ()
    alive = (pod for pod in seen.workers if not pod.meta.deleting and pod.meta.created)
    return tuple(pod for pod in alive if seconds_between(pod.meta.created, keys_since) > CLOCKS_DIFFER)


def event_text(worker: PodView, *, replaced: bool) -> str:
    """The event about a dead worker."""
    then = "the operator replaces it" if replaced else "its pod stays until the launcher's attempt has ended"
    return f"worker-{worker.index} ended: {worker.why or worker.phase}; {then}"
