"""One look at one job: observe, plan, decide, act, and say how it stands."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from mpiboot.controller import kinds
from mpiboot.controller.act import Actor, FailingError, OnePairError
from mpiboot.controller.action import Create
from mpiboot.controller.api_error import TroubleError
from mpiboot.controller.checkins import picture
from mpiboot.controller.dead import dead
from mpiboot.controller.deadline import is_over, until_overdue, until_removed
from mpiboot.controller.decide import decide
from mpiboot.controller.memory import Memory
from mpiboot.controller.named import LOOK_AGAIN
from mpiboot.controller.observe import observe
from mpiboot.controller.publish import news
from mpiboot.job import elastic, names
from mpiboot.job.problems import ManifestError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpiboot.checkin.picture import View
    from mpiboot.controller.action import Stage
    from mpiboot.controller.api import Api, Object
    from mpiboot.controller.kinds import Kind
    from mpiboot.controller.observe import Caches, Observed
    from mpiboot.controller.report import Reporter
    from mpiboot.controller.view import MpiJobView
    from mpiboot.job.plan import Plan
    from mpiboot.job.settings import Settings
    from mpiboot.ssh.keys import KeyType

log = logging.getLogger(__name__)

OURS = (None, "", "kubeflow.org/mpi-operator")  # values of managedBy that mean this operator
# A suspended job waits for somebody who will change it at once, and a write in between would refuse that change.
SUSPENDED_REST = 1.0


class Reconciler:
    """Handles the queue's keys. Several jobs at once, each by one call at a time."""

    def __init__(
        self,
        api: Api,
        caches: Caches,
        reporter: Reporter,
        settings: Settings,
        key_type: KeyType,
        show: Callable[[str, View | None], None],
    ) -> None:
        self._caches, self._reporter = caches, reporter
        self._settings, self._key_type, self._show = settings, key_type, show
        self._api, self._actor = api, Actor(api, self._learn)
        self._memories: dict[str, Memory] = {}
        self._puts = {
            kinds.JOB: caches.jobs.put,
            kinds.POD: caches.pods.put,
            kinds.SERVICE: caches.services.put,
            kinds.CONFIG_MAP: caches.config_maps.put,
        }

    async def handle(self, key: str) -> float | None:
        """Seconds until the job is to be looked at again, if it should be without anything happening."""
        view = self._find(key)
        if view is None:
            self._show(key, None)
            return None
        policy = (view.raw.get("spec") or {}).get("runPolicy") or {}
        if policy.get("managedBy") not in OURS:
            return None
        memory = self._memory(view)
        if policy.get("suspend") is True and not view.raw.get("status"):
            rest = memory.born + SUSPENDED_REST - time.monotonic()
            if rest > 0:
                return rest
        try:
            memory.look_at(view, self._settings, self._key_type)
        except ManifestError as error:
            await self._reporter.reject(view, memory, error)
        if memory.plan is None:
            return None
        # A job that was good and has been edited into nonsense goes on as it was.
        self._reporter.warn(view, memory)
        return await self._look(view, memory.plan, memory)

    def view(self, key: str) -> View | None:
        """The job as the check-in server shows it; None if there is none that can run."""
        view = self._find(key)
        if view is None:
            return None
        try:
            plan = self._memory(view).look_at(view, self._settings, self._key_type)
        except ManifestError:
            return None
        return picture(plan.job, observe(self._caches, view), self._settings.cluster_domain)

    async def _look(self, view: MpiJobView, plan: Plan, memory: Memory) -> float | None:
        job, domain = plan.job, self._settings.cluster_domain
        seen = observe(self._caches, view)
        if names_matter(plan, seen):
            service, workers = names.service(job.name), seen.ready_workers(job)
            unnamed = await memory.named.lacking(self._api, view.namespace, service, workers, time.monotonic())
            seen = replace(seen, unnamed=unnamed)
        # Workers come one by one: what the launcher is told need not follow each of them, only the last.
        wait = 0.0 if seen.all_ready(job) else memory.hosts.wait()
        told = news(plan, seen, domain, due=not wait)
        told = replace(told, nudge=memory.nudges.mark(told.nudge, time.monotonic()))
        lost = dead(job, seen, memory.losses, time.monotonic())
        self._reporter.lost(view, job, memory, lost)
        over = is_over(until_removed(job, seen))
        stages = decide(plan, seen, told, has_secret=memory.has_secret, replace=lost.replace, remove_launcher=over)
        trouble: TroubleError | None = None
        try:
            if stages:
                await self._actor.act(view.namespace, view.meta.uid, stages)
                memory.has_secret = memory.has_secret or makes_secret(stages)
                memory.hosts.went()
                for pod in lost.replace:
                    memory.losses.replaced(pod.index, time.monotonic())
            memory.failing.over()
        except OnePairError:
            memory.take_one_pair()
            return await self._look(view, memory.look_at(view, self._settings, self._key_type), memory)
        except TroubleError as error:
            if isinstance(error, FailingError) and not memory.failing.lasts(time.monotonic()):
                raise
            trouble = error
        ask_again = LOOK_AGAIN if seen.unnamed else 0.0
        seen = observe(self._caches, view)
        memory.has_launcher = seen.launcher is not None
        self._show(view.key, picture(job, seen, domain))
        overdue = is_over(until_overdue(job, seen))
        rest = await self._reporter.report(view, job, seen, memory, overdue=overdue, trouble=trouble)
        if trouble:
            raise trouble
        later = wait if told.differ(seen) else 0.0
        deadlines = (until_overdue(job, seen), until_removed(job, seen))
        again = (rest, later, ask_again, lost.again, memory.nudges.wait(time.monotonic()), *deadlines)
        return min((each for each in again if each), default=None)

    def _memory(self, view: MpiJobView) -> Memory:
        memory = self._memories.get(view.key)
        if memory is None or memory.uid != view.meta.uid:
            memory = self._memories[view.key] = Memory(view.meta.uid)
        return memory

    def _find(self, key: str) -> MpiJobView | None:
        """The job, unless it is gone or going: then nothing of it is remembered, least of all its keys.

        What belongs to it goes with it: the garbage collector sees to that.
        """
        view = self._caches.mpi_jobs.of(key).get(key.partition("/")[2])
        if view and not view.meta.deleting:
            return view
        self._memories.pop(key, None)
        self._reporter.forget(key)
        return None

    def _learn(self, kind: Kind, found: Object) -> None:
        if put := self._puts.get(kind):
            put(found)


def names_matter(plan: Plan, seen: Observed) -> bool:
    """Whether a launcher that can find its workers only by their names is about to look for them."""
    if plan.launcher_waits == "in-place":
        return False
    gated = any(pod.gated for pod in seen.launcher_pods)
    return elastic.of_job(plan.job) is not None or (gated and seen.enough_ready(plan.job))


def makes_secret(stages: Sequence[Stage]) -> bool:
    return any(isinstance(act, Create) and act.kind == kinds.SECRET for stage in stages for act in stage.actions)
