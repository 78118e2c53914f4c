"""The workers of one job: their own reports, and what the cluster shows of their pods. No I/O, no clock."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from mpiboot.checkin.messages import WorkerState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.checkin.messages import Report

_REMEMBERED = 8  # earlier starts of one worker


class NoSuchWorkerError(LookupError):
    """The index is outside the job."""


class ReplacedError(Exception):
    """The report is from an earlier start of this worker, and a later one has checked in."""


@dataclass(frozen=True)
class Pod:
    """What is observed of a worker's pod.

    pending: its container has not run yet. running: it runs. failed: it ended, also when it will be restarted.
    `reason` is for users: what is missing.
    """

    state: Literal["pending", "running", "failed", "unknown"] = "unknown"
    uid: str = ""
    address: str = ""
    reason: str = ""


@dataclass(frozen=True)
class View:
    """A job as its operator sees it: the workers' names in the order of their indexes, and the pods there are."""

    names: tuple[str, ...]
    pods: Mapping[int, Pod] = field(default_factory=dict)


class Roster:
    """All workers of one job. Each change returns the workers that differ now."""

    def __init__(self, view: View) -> None:
        self._workers = [_Worker(i, name, view.pods.get(i, Pod())) for i, name in enumerate(view.names)]

    @property
    def workers(self) -> tuple[WorkerState, ...]:
        return tuple(worker.state for worker in self._workers)

    def check_in(self, index: int, report: Report) -> bool:
        """Whether the worker differs now; a duplicate changes nothing."""
        if not 0 <= index < len(self._workers):
            raise NoSuchWorkerError(f"worker {index} is not in this job of {len(self._workers)} workers")
        return self._workers[index].take(report)

    def observe(self, view: View) -> frozenset[int] | None:
        """The indexes of workers that differ now; None if the list of workers itself changed."""
        names = tuple(worker.name for worker in self._workers)
        changed = {w.index for w, n in zip(self._workers, view.names, strict=False) if n == w.name and w.observe(view)}
        if names == view.names:
            return frozenset(changed)
        known = {(worker.index, worker.name): worker for worker in self._workers}
        self._workers = [
            known.get((i, name)) or _Worker(i, name, view.pods.get(i, Pod())) for i, name in enumerate(view.names)
        ]
        return None


class _Worker:
    def __init__(self, index: int, name: str, pod: Pod) -> None:
        self.index, self.name, self._pod = index, name, pod
        self._report: Report | None = None
        self._former: deque[tuple[str, str]] = deque(maxlen=_REMEMBERED)
        self.state = self._look()

    def take(self, report: Report) -> bool:
        begin = (report.uid, report.start)
        if begin in self._former:
            raise ReplacedError(f"worker {self.index} has been replaced or has restarted since")
        if self._report and (self._report.uid, self._report.start) != begin:
            self._former.append((self._report.uid, self._report.start))
        self._report = report
        return self._changed()

    def observe(self, view: View) -> bool:
        before, self._pod = self._pod, view.pods.get(self.index, Pod())
        if self._report and _ended(before, self._pod, self._report):
            if self._report.start:  # without it, the next start of the same pod would look like this one
                self._former.append((self._report.uid, self._report.start))
            self._report = None
        return self._changed()

    def _changed(self) -> bool:
        before, self.state = self.state, self._look()
        return self.state != before

    def _look(self) -> WorkerState:
        pod, report = self._pod, self._report
        if not report:
            return WorkerState(self.name, self.index, pod.state, pod.address, uid=pod.uid, reason=pod.reason)
        here = (report.address, report.port, report.user, report.uid)
        return WorkerState(self.name, self.index, "ready", *here, start=report.start)


def _ended(before: Pod, now: Pod, report: Report) -> bool:
    """Whether the pod shows that the worker which sent the report has ended.

    A worker's own report is seconds ahead of what the cluster shows of its pod. Only a new end of this very pod
    withdraws the report. "Not running yet" and news of an earlier pod do not.
    """
    if before.uid and now.uid != before.uid:
        return report.uid in ("", before.uid)
    newly_failed = now.state == "failed" and before.state != "failed"
    return newly_failed and report.uid in ("", now.uid)
