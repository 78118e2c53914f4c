"""A job's next status and the events of the change: a pure function of the last status and what is observed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from mpiboot.controller import status_dialects
from mpiboot.controller.observe import LAUNCHER_JOB
from mpiboot.controller.state_word import LONGEST_REASON, phase_and_reason, truncated
from mpiboot.job import elastic
from mpiboot.kube.conditions import REASONS, Conditions, conditions_of, is_finished

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpiboot.controller.observe import Observed
    from mpiboot.job.job_annotations import LaunchMode
    from mpiboot.job.model import Job
    from mpiboot.kube.conditions import Status
    from mpiboot.kube.conditions import Type as ConditionType
    from mpiboot.kube.job_projection import JobView
    from mpiboot.kube.pod_projection import PodView

EventType = Literal["Normal", "Warning"]
LAUNCHER_DELETED = (
    "the launcher's Job was deleted while no operator watched it: its program may have ended well, so it does not run "
    "a second time"
)


@dataclass(frozen=True)
class Event:
    """A Kubernetes event about a job."""

    type: EventType
    reason: str
    message: str
    at: str = ""  # of a condition's change: the time in the status. Such an event is sent again after a crash.


@dataclass(frozen=True)
class Next:
    """The status to write, and the events to send afterwards."""

    status: Status
    events: tuple[Event, ...]


def next_status(
    job: Job, seen: Observed, now: str, *, overdue: bool = False, trouble: str = "", waits: LaunchMode | None = None,
    attempts: Sequence[str] = (),
) -> Next:  # fmt: skip
    """`now` as in manifests. `overdue`: the job's time is over. `trouble`: the error that stops the operator.

    `waits`: how the launcher waits for its workers, if that is known. `attempts`: how attempts ended since the last
    status, where the launcher restarts its command.
    """
    old: Status = seen.view.raw.get("status") or {}
    step = _Step(job, seen, now, dict(old), conditions_of(old))
    step.created()
    step.restarts(attempts)
    if waits:
        step.status["launcherWaits"] = waits
    if not is_finished(old):
        step.suspension()
        step.outcome(overdue=overdue)
        step.launcher()
        step.workers()
        step.running()
    else:
        step.status.setdefault("completionTime", now)  # other operators leave it out of some failures
        if not status_dialects.keeps_workers(job):
            step.no_workers()
    return step.result(trouble)


def latest_events(job: Job, status: Status) -> tuple[Event, ...]:
    """The events of the latest change of a status: the operator may have died between the status and its events."""
    conditions = [each for each in conditions_of(status).items if each.get("lastUpdateTime")]
    latest = max((each["lastUpdateTime"] for each in conditions), default="")
    events = []
    for each in conditions:
        kind, reason, text = each["type"], each.get("reason", ""), each.get("message", "")
        resumed = kind == "Suspended" and reason == REASONS["resumed"]
        if each["lastUpdateTime"] != latest or not (each["status"] == "True" or resumed):
            continue
        if kind == "Failed":
            text = truncated(status_dialects.event_text(job, status.get("reason") or text))
        events.append(Event("Warning" if kind in {"Failed", "Restarting"} else "Normal", reason, text, latest))
    return tuple(events)


class _Step:
    """From one status to the next. `next_status` calls the methods in the order in which they stand."""

    def __init__(self, job: Job, seen: Observed, now: str, status: Status, conditions: Conditions) -> None:
        self.job, self.seen, self.now, self.status, self.conditions = job, seen, now, status, conditions
        self.events: list[Event] = []
        self.name = f"MPIJob {job.namespace}/{job.name}"
        self.replicas: dict[str, dict[str, int]] = {
            role: dict(counts) for role, counts in (status.get("replicaStatuses") or {}).items()
        }
        self.cause = ""  # of a failure that this step found
        self.failed_before = self.replicas.get("Launcher", {}).get("failed", 0)

    def created(self) -> None:
        if not self.conditions.items:
            text = f"{self.name} is created."
            self._set("Created", REASONS["created"], text, event="Normal")

    def restarts(self, attempts: Sequence[str]) -> None:
        if attempts:
            count = (self.status.get("restarts") or {}).get("count", 0) + len(attempts)
            self.status["restarts"] = {"count": count, "cause": attempts[-1], "time": self.now}
        for text in attempts:
            self._add_event("Warning", "AttemptFailed", text)

    def suspension(self) -> None:
        if self.job.run_policy.suspend:
            self._set("Suspended", REASONS["suspended"], "MPIJob suspended", event="Normal")
            self._set("Running", REASONS["suspended"], f"{self.name} is suspended.", true=False)
            return
        if self.conditions.get("Suspended") and self._set(
            "Suspended", REASONS["resumed"], "MPIJob resumed", true=False, event="Normal"
        ):
            self.status["startTime"] = self.now
        self.status.setdefault("startTime", self.now)

    def outcome(self, *, overdue: bool) -> None:
        launcher = self.seen.launcher
        if launcher and launcher.outcome == "Complete":
            self.status.setdefault("completionTime", launcher.completed or self.now)
            self._set("Succeeded", REASONS["succeeded"], f"{self.name} successfully completed.", event="Normal")
        elif launcher and launcher.outcome == "Failed":
            self.status.setdefault("completionTime", self.now)
            self._failed(*self._failure(launcher))
        elif self.seen.lost_launcher:
            self.status.setdefault("completionTime", self.now)
            self._failed("LauncherDeleted", LAUNCHER_DELETED)
        elif overdue:
            self.status.setdefault("completionTime", self.now)
            self._failed("DeadlineExceeded", "Job was active longer than specified deadline")
        elif unfit := next((pod.unfit for pod in self.seen.workers if pod.unfit), ""):
            self.status.setdefault("completionTime", self.now)
            self._failed("ImageLacksSSH", unfit)
        if self.conditions.finished and not self.conditions.get("Running") and not status_dialects.is_old(self.job):
            text = f"{self.name} is finished but Running condition was never set."
            self._set("Running", REASONS["running"], text, true=False, now=self.status["completionTime"])

    def launcher(self) -> None:
        launcher = self.seen.launcher
        if launcher is None:
            self.replicas.pop("Launcher", None)
            return
        running = sum(pod.phase == "Running" for pod in self.seen.launcher_pods)
        active = 0 if self.conditions.finished else running
        succeeded = int(launcher.outcome == "Complete")
        self.replicas["Launcher"] = _counts(active=active, succeeded=succeeded, failed=launcher.failed)

    def workers(self) -> None:
        if self.job.run_policy.suspend or (self.conditions.finished and not status_dialects.keeps_workers(self.job)):
            self.no_workers()
            return
        pods = self.seen.wanted_workers(self.job)
        phases = [pod.phase for pod in pods]
        failed = phases.count("Failed")
        failed_before = self.replicas.get("Worker", {}).get("failed", 0)
        active, succeeded = phases.count("Running"), phases.count("Succeeded")
        self.replicas["Worker"] = _counts(active=active, succeeded=succeeded, failed=failed)
        evicted = _evicted(pods)
        if evicted and failed > failed_before:
            self._add_event("Warning", REASONS["evicted"], f"{evicted}/{self.job.workers} workers are evicted")

    def running(self) -> None:
        launcher = self.seen.launcher
        if self.job.run_policy.suspend or self.conditions.finished or launcher is None:
            return
        alive = self.replicas["Launcher"].get("active", 0)
        if alive and self.replicas["Worker"].get("active", 0) >= elastic.enough_workers(self.job):
            self._set("Running", REASONS["running"], f"{self.name} is running.", event="Normal")
        elif not alive and launcher.failed > self.failed_before and status_dialects.is_old(self.job):
            self._set("Restarting", REASONS["restarting"], f"{self.name} is restarting.", event="Warning")

    def no_workers(self) -> None:
        self.replicas["Worker"] = {}

    def result(self, trouble: str) -> Next:
        self.status["conditions"] = list(self.conditions.items)
        self.status["replicaStatuses"] = self.replicas
        state, reason = phase_and_reason(self.job, self.seen, self.conditions, trouble)
        self.status["state"] = state
        before = self.status.pop("reason", "")
        if state == "Failed":  # the condition's message may omit the cause
            reason = truncated(self.cause, LONGEST_REASON) or before
        if reason:
            self.status["reason"] = reason
        if state == "Waiting" and reason and reason != before:
            self._add_event("Normal", "WaitingForWorkers", reason)
        launcher = self.seen.launcher
        if launcher and not launcher.suspended and not self.conditions.finished:
            self.status[LAUNCHER_JOB] = launcher.meta.uid
        else:
            self.status.pop(LAUNCHER_JOB, None)
        if not self.conditions.finished:
            ready = 0 if self.job.run_policy.suspend else len(self.seen.ready_workers(self.job))
            self.status["workers"] = f"{ready}/{self.job.workers}"
        ready = 0 if self.conditions.finished else len(self.seen.ready_workers(self.job))
        active = self.replicas.get("Launcher", {}).get("active", 0)
        self.status |= status_dialects.words(self.job, self.conditions, active=active, ready=ready)
        return Next(self.status, tuple(self.events))

    def _failed(self, reason: str, message: str) -> None:
        condition, words = status_dialects.failure(self.job, reason, message)
        if self._set("Failed", condition, words):
            self.cause = message
            self._add_event("Warning", condition, truncated(status_dialects.event_text(self.job, message)), self.now)

    def _failure(self, launcher: JobView) -> tuple[str, str]:
        reason = launcher.reason or REASONS["failed"]
        message = launcher.message or f"{self.name} has failed"
        if launcher.reason == "BackoffLimitExceeded":
            if self.seen.failed_launchers:
                last = self.seen.failed_launchers[-1]
                reason += f"/{last.reason}"
                message += f": {last.message or last.failure or last.why}"
            pods = self.seen.wanted_workers(self.job)
            if evicted := _evicted(pods):
                reason = REASONS["evicted"]
                message = f"{evicted}/{self.job.workers} workers are evicted; {message}"
        return reason, truncated(message)

    def _set(
        self,
        kind: ConditionType,
        reason: str,
        message: str,
        *,
        true: bool = True,
        event: EventType | None = None,
        now: str = "",
    ) -> bool:
        before = self.conditions
        self.conditions = before.having(kind, true=true, reason=reason, message=message, now=now or self.now)
        changed = self.conditions is not before
        if changed and event:
            self._add_event(event, reason, message, now or self.now)
        return changed

    def _add_event(self, kind: EventType, reason: str, message: str, at: str = "") -> None:
        self.events.append(Event(kind, reason, message, at))


def _counts(**counts: int) -> dict[str, int]:
    """Zeros are omitted, as everywhere in the API."""
    return {name: count for name, count in counts.items() if count}


def _evicted(pods: tuple[PodView, ...]) -> int:
    return sum(pod.phase == "Failed" and pod.reason == "Evicted" for pod in pods)
