"""Report how a job stands: status, events and metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.controller.dead_workers import event_text
from mpiboot.controller.job_state import PARKED_FOR
from mpiboot.controller.state_word import LONGEST_REASON, truncated
from mpiboot.controller.status import Event, latest_events, next_status
from mpiboot.controller.status_dialects import is_old
from mpiboot.job import job_annotations
from mpiboot.job.job_annotations import HOST_KEYS
from mpiboot.kube import kinds
from mpiboot.kube.clock import now, seconds_since
from mpiboot.kube.conditions import REASONS, conditions_of

if TYPE_CHECKING:
    from mpiboot.controller.cache import Cache
    from mpiboot.controller.dead_workers import Dead
    from mpiboot.controller.events import Recorder
    from mpiboot.controller.job_state import JobState
    from mpiboot.controller.metrics import Metrics
    from mpiboot.controller.observe import Observed
    from mpiboot.job.arrangement import Arrangement
    from mpiboot.job.model import Job
    from mpiboot.job.problems import ManifestError
    from mpiboot.kube.api import Api
    from mpiboot.kube.api_error import TroubleError
    from mpiboot.kube.conditions import Status
    from mpiboot.kube.projections import MpiJobView

HOSTS_NOT_VERIFIED = (
    "the launcher does not verify the host keys of the workers, because the workers start by a command of their own; "
    f"if their sshd shows the job's host key, annotate the job with {HOST_KEYS}: verify; or leave the command out"
)
EVENTS_STAY = 3600.0  # seconds; an API server drops older events, and so there is no older one to send again
MOST_WARNINGS = 20  # events about one edit of a manifest
# These fields of a status are written at once; the others show progress and may wait a moment.
URGENT = ("conditions", "startTime", "completionTime")


def hosts_event(arrangement: Arrangement) -> Event | None:
    """An event if hosts are not verified and the user may not know. `mpiboot lint` is silent: nothing is wrong."""
    if arrangement.verify_hosts or job_annotations.host_keys(arrangement.job.annotations):
        return None
    return Event("Normal", "HostsNotVerified", HOSTS_NOT_VERIFIED)


class Reporter:
    """Writes a status only if it differs, and sends an event only after its status is written."""

    def __init__(self, api: Api, mpi_jobs: Cache[MpiJobView], recorder: Recorder, metrics: Metrics) -> None:
        self._api, self._mpi_jobs, self._recorder, self._metrics = api, mpi_jobs, recorder, metrics

    def warn(self, view: MpiJobView, state: JobState) -> None:
        """Send the warnings about a manifest, each once."""
        new = [problem for problem in state.warnings if problem not in state.reported_warnings]
        state.reported_warnings = frozenset(state.warnings)
        for problem in new[:MOST_WARNINGS]:
            self._recorder.send(view, Event("Warning", problem.event, problem.text()))
        if len(new) > MOST_WARNINGS:
            text = f"and {len(new) - MOST_WARNINGS} more warnings: mpiboot lint shows them"
            self._recorder.send(view, Event("Warning", "ValidationWarning", text))
        if state.ignored:
            text = f"ignored while the job runs: {', '.join(state.ignored)}; suspend and resume the job to apply it"
            state.ignored = ()
            self._recorder.send(view, Event("Warning", "ChangeIgnored", text))
        # At the first look only: the status has conditions afterwards, also for the operator's next process.
        if (
            not conditions_of(view.raw.get("status") or {}).items
            and state.plan
            and (event := hosts_event(state.plan.arrangement))
        ):
            self._recorder.send(view, event)

    def lost(self, view: MpiJobView, job: Job, state: JobState, lost: Dead) -> None:
        """Send one event about each dead worker: why it ended, and whether it is replaced."""
        # Workers replaced at once never appear in the status, so their eviction event is sent here.
        evicted = sum(pod.reason == "Evicted" for pod in lost.replace if pod.meta.uid not in state.reported_dead)
        if evicted:
            text = f"{evicted}/{job.workers} workers are evicted"
            self._recorder.send(view, Event("Warning", REASONS["evicted"], text))
        for pod in lost.all:
            if pod.meta.uid not in state.reported_dead:
                replaced = pod in lost.replace or lost.again is not None
                text = truncated(event_text(pod, replaced=replaced))
                self._recorder.send(view, Event("Warning", "WorkerEnded", text))
        state.reported_dead = frozenset(pod.meta.uid for pod in lost.all)

    def secret_made_again(self, view: MpiJobView, *, other_keys: bool) -> None:
        """Report that a job's Secret was deleted, and is there again."""
        text = "the job's Secret was deleted, and the operator made it again"
        if other_keys:
            text += " with other keys: it replaces the workers as soon as no launcher runs"
        self._recorder.send(view, Event("Warning", "SecretDeleted", text))

    async def reject(self, view: MpiJobView, state: JobState, error: ManifestError) -> None:
        """Report that a job is invalid, and why."""
        text = truncated(f"Found validation errors: {'; '.join(problem.text() for problem in error.problems)}")
        if text != state.rejected:
            state.rejected = text
            self._recorder.send(view, Event("Warning", "ValidationError", text))
        if state.plan is None:
            old: Status = view.raw.get("status") or {}
            await self._write(view, {**old, "state": "Invalid", "reason": text})

    async def park(self, view: MpiJobView, error: Exception) -> None:
        """Report that the operator fails at this job and leaves it alone."""
        cause = truncated(f"{type(error).__name__}: {error}", LONGEST_REASON // 2)
        minutes = f"{PARKED_FOR / 60:.0f} minutes"
        text = f"the operator cannot handle this job ({cause}) and ignores it until it is edited, or for {minutes}"
        self._recorder.send(view, Event("Warning", "JobParked", text))
        old: Status = view.raw.get("status") or {}
        await self._write(view, {"state": "Pending", **old, "reason": text})

    async def report(
        self,
        view: MpiJobView,
        job: Job,
        seen: Observed,
        state: JobState,
        *,
        overdue: bool,
        trouble: TroubleError | None,
    ) -> float | None:
        """Write the status if it differs, and send the events. Seconds until an update that waits is due."""
        if trouble and trouble.event:
            self._recorder.send(view, Event("Warning", trouble.event, truncated(str(trouble))))
        if seen.launcher:
            self._metrics.info[view.key] = (seen.launcher.name, view.namespace)
        old: Status = view.raw.get("status") or {}
        if not state.resent:
            state.resent = True
            for event in latest_events(job, old):
                if seconds_since(event.at) < EVENTS_STAY:
                    self._recorder.send(view, event, again=True)
        waits = state.plan.arrangement.launch_mode if state.plan else None
        attempts = tuple(state.attempts.uncounted)
        coming = next_status(
            job, seen, now(), overdue=overdue, trouble=str(trouble or ""), waits=waits, attempts=attempts
        )
        if coming.status == old:
            return None
        urgent = any(coming.status.get(field) != old.get(field) for field in URGENT)
        if not urgent and (wait := state.status.wait()):
            return wait
        # Only with another change: alone, lastReconcileTime would change for ever.
        await self._write(view, {**coming.status, "lastReconcileTime": now()} if is_old(job) else coming.status)
        state.status.went()
        del state.attempts.uncounted[: len(attempts)]
        for event in coming.events:
            self._recorder.send(view, event)
        self._count(old, coming.status)
        return None

    def forget(self, key: str) -> None:
        self._metrics.info.pop(key, None)

    async def _write(self, view: MpiJobView, status: Status) -> None:
        if status == view.raw.get("status"):
            return
        # The version in it makes this request fail if the job has changed since.
        manifest = {**view.raw, "status": status}
        found = await self._api.replace(kinds.MPI_JOB, view.namespace, view.name, manifest, subresource="status")
        self._mpi_jobs.put(found)

    def _count(self, old: Status, new: Status) -> None:
        before, after = conditions_of(old), conditions_of(new)
        self._metrics.created += not before.items
        self._metrics.successful += after.true("Succeeded") and not before.true("Succeeded")
        self._metrics.failed += after.true("Failed") and not before.true("Failed")
