"""Tell the world how a job stands: its status, its events, our counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.controller import kinds
from mpiboot.controller.clock import now
from mpiboot.controller.conditions import REASONS
from mpiboot.controller.dead import told
from mpiboot.controller.dialects import is_old
from mpiboot.controller.status import Event, conditions_of, next_status
from mpiboot.controller.words import truncated

if TYPE_CHECKING:
    from mpiboot.controller.api import Api
    from mpiboot.controller.api_error import TroubleError
    from mpiboot.controller.cache import Cache
    from mpiboot.controller.dead import Dead
    from mpiboot.controller.events import Recorder
    from mpiboot.controller.memory import Memory
    from mpiboot.controller.metrics import Metrics
    from mpiboot.controller.observe import Observed
    from mpiboot.controller.status import Status
    from mpiboot.controller.view import MpiJobView
    from mpiboot.job.model import Job
    from mpiboot.job.problems import ManifestError

# Of what a status holds, this must be written at once; the rest is progress and may wait a moment.
URGENT = ("conditions", "startTime", "completionTime")


class Reporter:
    """Writes a status only if it differs, and says an event only when its status is written."""

    def __init__(self, api: Api, mpi_jobs: Cache[MpiJobView], recorder: Recorder, metrics: Metrics) -> None:
        self._api, self._mpi_jobs, self._recorder, self._metrics = api, mpi_jobs, recorder, metrics

    def warn(self, view: MpiJobView, memory: Memory) -> None:
        """Say once what the job's user should know about the manifest."""
        for problem in memory.warnings:
            if problem not in memory.told:
                memory.told.add(problem)
                self._recorder.tell(view, Event("Warning", problem.event, problem.text()))

        if memory.ignored:
            text = f"changed too late, the pods keep what they were made with: {', '.join(memory.ignored)}"
            memory.ignored = ()
            self._recorder.tell(view, Event("Warning", "ChangeIgnored", text))

    def lost(self, view: MpiJobView, job: Job, memory: Memory, lost: Dead) -> None:
        """Say once of each dead worker why it ended and what becomes of it."""
        # Those that are replaced at once are never in a status, which says it of the others.
        evicted = sum(pod.reason == "Evicted" for pod in lost.replace if pod.meta.uid not in memory.told)
        if evicted:
            text = f"{evicted}/{job.workers} workers are evicted"
            self._recorder.tell(view, Event("Warning", REASONS["evicted"], text))
        for pod in lost.all:
            if pod.meta.uid not in memory.told:
                memory.told.add(pod.meta.uid)
                replaced = pod in lost.replace or lost.again is not None
                text = truncated(told(pod, replaced=replaced))
                self._recorder.tell(view, Event("Warning", "WorkerEnded", text))

    async def reject(self, view: MpiJobView, memory: Memory, error: ManifestError) -> None:
        """Say that the job cannot run as it is, and why."""
        text = truncated(f"Found validation errors: {'; '.join(problem.text() for problem in error.problems)}")
        if text not in memory.told:
            memory.told = {text}
            self._recorder.tell(view, Event("Warning", "ValidationError", text))
        if memory.plan is None:
            old: Status = view.raw.get("status") or {}
            await self._write(view, {**old, "state": "Invalid", "reason": text})

    async def report(
        self,
        view: MpiJobView,
        job: Job,
        seen: Observed,
        memory: Memory,
        *,
        overdue: bool,
        trouble: TroubleError | None,
    ) -> float | None:
        """Seconds until a progress that was held back is due."""
        if trouble and trouble.event:
            self._recorder.tell(view, Event("Warning", trouble.event, truncated(str(trouble))))
        if seen.launcher:
            self._metrics.info[view.key] = (seen.launcher.name, view.namespace)
        coming = next_status(job, seen, now(), overdue=overdue, trouble=str(trouble or ""))
        old: Status = view.raw.get("status") or {}
        if coming.status == old:
            return None
        urgent = any(coming.status.get(field) != old.get(field) for field in URGENT)
        if not urgent and (wait := memory.status.wait()):
            return wait
        # Only with something else to write: alone it would change for ever.
        await self._write(view, {**coming.status, "lastReconcileTime": now()} if is_old(job) else coming.status)
        memory.status.went()
        for event in coming.events:
            self._recorder.tell(view, event)
        self._count(old, coming.status)
        return None

    def forget(self, key: str) -> None:
        self._metrics.info.pop(key, None)

    async def _write(self, view: MpiJobView, status: Status) -> None:
        if status == view.raw.get("status"):
            return
        # The version in it makes this fail if the job has been changed since we looked.
        manifest = {**view.raw, "status": status}
        found = await self._api.replace(kinds.MPI_JOB, view.namespace, view.name, manifest, subresource="status")
        self._mpi_jobs.put(found)

    def _count(self, old: Status, new: Status) -> None:
        before, after = conditions_of(old), conditions_of(new)
        self._metrics.created += not before.items
        self._metrics.successful += after.true("Succeeded") and not before.true("Succeeded")
        self._metrics.failed += after.true("Failed") and not before.true("Failed")
