"""Reconcile one job: observe, plan, decide, act, and report its status."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from mpiboot.controller.act import Actor, FailingError, OnePairError
from mpiboot.controller.checkins import checkin_view
from mpiboot.controller.dead_workers import dead, with_other_keys
from mpiboot.controller.deadline import is_over, until_overdue, until_removed
from mpiboot.controller.decide import after_the_end, decide
from mpiboot.controller.dns_ready import LOOK_AGAIN
from mpiboot.controller.job_state import MOST_CRASHES, PARKED_FOR, JobState, TooSlowError
from mpiboot.controller.launcher_news import news
from mpiboot.controller.observe import observe
from mpiboot.job import elastic, names
from mpiboot.job.arrangement import arrange
from mpiboot.job.problems import ManifestError
from mpiboot.job.read.fields import MOST_WORKERS_EVER
from mpiboot.kube import kinds
from mpiboot.kube.api_error import ApiError, TroubleError, UnreachableError
from mpiboot.kube.conditions import is_finished
from mpiboot.kube.projections import job_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.checkin.messages import Attempt
    from mpiboot.checkin.roster import View
    from mpiboot.controller.observe import Caches, Observed
    from mpiboot.controller.report import Reporter
    from mpiboot.job.job_annotations import LaunchMode
    from mpiboot.job.model import Job
    from mpiboot.job.plan.plan import Plan
    from mpiboot.job.settings import Settings
    from mpiboot.kube.api import Api, Object
    from mpiboot.kube.kinds import Kind
    from mpiboot.kube.projections import MpiJobView
    from mpiboot.ssh.keys import KeyType

log = logging.getLogger(__name__)

OURS = (None, "", "kubeflow.org/mpi-operator")  # values of managedBy that mean this operator
# The client that creates a suspended job usually edits it at once, and a status write in between would conflict.
SUSPENDED_REST = 1.0


class Reconciler:
    """Handles the keys of the work queue: several jobs at the same time, each in one call at a time."""

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
        self._states: dict[str, JobState] = {}
        self._puts = {
            kinds.JOB: caches.jobs.put,
            kinds.POD: caches.pods.put,
            kinds.SERVICE: caches.services.put,
            kinds.CONFIG_MAP: caches.config_maps.put,
        }
        if caches.pod_groups:
            self._puts[caches.pod_groups.kind] = caches.pod_groups.put

    async def handle(self, key: str) -> float | None:
        """Reconcile a job; seconds until the next time if nothing changes before, or None."""
        view = self._find(key)
        if view is None:
            self._show(key, None)
            return None
        state = self._state_of(view)
        if rest := state.parked.left(view, time.monotonic()):
            return rest
        try:
            again = await self._handle(view, state)
        except (ApiError, UnreachableError, TroubleError, TimeoutError):
            raise
        except Exception as error:
            times = MOST_CRASHES if isinstance(error, TooSlowError) else 1
            if not state.parked.crashed(view, time.monotonic(), times=times):
                raise
            log.exception("this job is left alone until it is edited, for %.0f minutes at most", PARKED_FOR / 60)
            await self._reporter.park(view, error)
            return PARKED_FOR
        state.parked.went_well()
        return again

    async def _handle(self, view: MpiJobView, state: JobState) -> float | None:
        policy = (view.raw.get("spec") or {}).get("runPolicy") or {}
        status = view.raw.get("status") or {}
        if policy.get("managedBy") not in OURS:
            return None
        if policy.get("suspend") is True and not status:
            rest = state.born + SUSPENDED_REST - time.monotonic()
            if rest > 0:
                return rest
        if is_finished(status):
            return await self._clean_up(view, state)
        try:
            self._plan_of(view, state)
        except ManifestError as error:
            await self._reporter.reject(view, state, error)
        if state.plan is None:
            return None
        # A valid job that an edit made invalid continues with its last valid plan.
        try:
            return await self._look(view, state.plan, state)
        finally:
            self._reporter.warn(view, state)

    def view(self, key: str) -> View | None:
        """The job as the check-in server shows it; None if it does not exist, is invalid or has finished."""
        view = self._find(key)
        if view is None:
            return None
        state = self._state_of(view)
        if is_finished(view.raw.get("status") or {}):
            state.rest()
            return None
        try:
            job = self._job_of(view, state)
        except ManifestError:
            return None
        mode = (state.plan.arrangement if state.plan else arrange(job, self._settings)).launch_mode
        return checkin_view(job, self._observe(view, job, state, mode), self._settings.cluster_domain)

    def _observe(self, view: MpiJobView, job: Job, state: JobState, mode: LaunchMode) -> Observed:
        """What the caches know of the job, and which of its workers' names are known in DNS, if its launcher asks."""
        seen = observe(self._caches, view)
        if mode != "guard":
            return seen
        return replace(seen, unnamed=state.named.not_found(seen.serving_workers(job, mode)))

    def attempted(self, key: str, attempt: Attempt) -> bool:
        """Whether the attempt is new; the next status counts it. A launcher may send it twice."""
        view = self._find(key)
        return view is not None and self._state_of(view).attempts.add(attempt)

    async def _clean_up(self, view: MpiJobView, state: JobState) -> float | None:
        """Delete what the policy of a finished job names. Memory holds nothing of the job, so it is read again."""
        state.rest()
        self._show(view.key, None)
        try:
            job = self._job_of(view, state)
        except ManifestError:
            return None
        finally:
            state.rest()
        seen = observe(self._caches, view)
        trouble: TroubleError | None = None
        try:
            over = is_over(until_removed(job, seen, state.stopwatch.since))
            await self._actor.act(view.namespace, view.meta.uid, after_the_end(job, seen, remove_launcher=over))
            state.failing.over()
        except TroubleError as error:
            if isinstance(error, FailingError) and not state.failing.lasts(time.monotonic()):
                raise
            trouble = error
        seen = observe(self._caches, view)
        rest = await self._reporter.report(view, job, seen, state, overdue=False, trouble=trouble)
        if trouble:
            raise trouble
        return min((each for each in (rest, until_removed(job, seen, state.stopwatch.since)) if each), default=None)

    async def _look(self, view: MpiJobView, plan: Plan, state: JobState) -> float | None:
        job, domain, mode = plan.job, self._settings.cluster_domain, plan.arrangement.launch_mode
        seen = await self._confirmed(view)
        needs_secret = pods_are_to_start(job, seen)
        if needs_secret and state.secret.there and not state.secret.wait(time.monotonic()):
            await self._check_secret(view, state)
        if names_matter(plan, seen):
            service, workers = names.service(job.name), seen.serving_workers(job, mode)
            state.named.keep(pod.meta.uid for pod in seen.workers)
            unnamed = await state.named.unknown(self._api, view.namespace, service, workers, time.monotonic())
            seen = replace(seen, unnamed=unnamed)
        # Workers become ready one by one: updates for the launcher may wait, but not after the last worker.
        wait = 0.0 if seen.all_ready(job) else state.hosts.wait()
        update = news(plan, seen, domain, due=not wait)
        update = replace(update, refresh_mark=state.refresh_marks.mark(update.refresh_mark, time.monotonic()))
        in_place = plan.arrangement.launch_mode == "in-place"
        lost = dead(job, seen, state.losses, time.monotonic(), in_place=in_place)
        self._reporter.lost(view, job, state, lost)
        replaced = dict.fromkeys((*lost.replace, *with_other_keys(seen, state.secret.keys_since)))
        stages = decide(plan, seen, update, has_secret=state.secret.there, replace=tuple(replaced))
        keys = state.secret.keys
        trouble: TroubleError | None = None
        try:
            if stages:
                await self._actor.act(view.namespace, view.meta.uid, stages)
                state.hosts.went()
                for pod in lost.replace:
                    state.losses.replaced(pod.index, time.monotonic())
            state.failing.over()
            if state.secret.lost:
                state.secret.lost = False
                self._reporter.secret_made_again(view, other_keys=keys != state.secret.keys)
                return await self._look(view, plan, state)
        except OnePairError:
            state.take_one_pair()
            return await self._look(view, self._plan_of(view, state), state)
        except TroubleError as error:
            if isinstance(error, FailingError) and not state.failing.lasts(time.monotonic()):
                raise
            trouble = error
        ask_again = LOOK_AGAIN if seen.unnamed else 0.0
        seen = replace(self._observe(view, job, state, mode), lost_launcher=seen.lost_launcher)
        state.has_launcher = seen.launcher is not None
        self._show(view.key, checkin_view(job, seen, domain))
        overdue = is_over(until_overdue(job, seen, state.stopwatch.since))
        rest = await self._reporter.report(view, job, seen, state, overdue=overdue, trouble=trouble)
        if trouble:
            raise trouble
        later = wait if update.differ(seen) else 0.0
        refresh = state.refresh_marks.wait(time.monotonic())
        secret = state.secret.wait(time.monotonic()) if needs_secret else 0.0
        again = (rest, later, secret, ask_again, lost.again, refresh, until_overdue(job, seen, state.stopwatch.since))
        return min((each for each in again if each), default=None)

    async def _confirmed(self, view: MpiJobView) -> Observed:
        """What the caches hold, and the API server's own word before a launcher counts as lost."""
        seen = observe(self._caches, view)
        if not seen.lost_launcher:
            return seen
        try:
            self._learn(kinds.JOB, await self._api.get(kinds.JOB, view.namespace, names.launcher(view.name)))
        except ApiError as error:
            if not error.not_found:
                raise
            return seen
        return replace(observe(self._caches, view), lost_launcher=False)

    async def _check_secret(self, view: MpiJobView, state: JobState) -> None:
        """Pods that do not start may lack their Secret: a user may have deleted it."""
        try:
            found = await self._api.get(kinds.SECRET, view.namespace, names.secret(view.name))
        except ApiError as error:
            if not error.not_found:
                raise
            state.secret.there, state.secret.lost = False, True
        else:
            state.secret.learn(found, time.monotonic())

    def _job_of(self, view: MpiJobView, state: JobState) -> Job:
        return state.read(view, self._settings, lambda: workers_until_now(view, self._caches))

    def _plan_of(self, view: MpiJobView, state: JobState) -> Plan:
        return state.look_at(view, self._settings, self._key_type, lambda: workers_until_now(view, self._caches))

    def _state_of(self, view: MpiJobView) -> JobState:
        state = self._states.get(view.key)
        if state is None or state.uid != view.meta.uid:
            state = self._states[view.key] = JobState(view.meta.uid)
        return state

    def _find(self, key: str) -> MpiJobView | None:
        """The job, or None if it is deleted or being deleted: then its memory is dropped, its keys above all.

        The garbage collector deletes what the job owns.
        """
        view = self._caches.mpi_jobs.of(key).get(key.partition("/")[2])
        if view and not view.meta.deleting:
            return view
        self._states.pop(key, None)
        self._reporter.forget(key)
        return None

    def _learn(self, kind: Kind, found: Object) -> None:
        if kind == kinds.SECRET and (state := self._states.get(job_key(found) or "")):
            state.secret.learn(found, time.monotonic())
        if put := self._puts.get(kind):
            put(found)


def workers_until_now(view: MpiJobView, caches: Caches) -> int:
    """How many workers a job may keep: those that exist, or those that its status counts if some of them are gone."""
    status = view.raw.get("status") or {}
    if is_finished(status):
        return MOST_WORKERS_EVER
    counts = (status.get("replicaStatuses") or {}).get("Worker") or {}
    counted: int = sum(counts.get(phase, 0) for phase in ("active", "succeeded", "failed"))
    return max(len(observe(caches, view).workers), counted)


def names_matter(plan: Plan, seen: Observed) -> bool:
    """Whether the launcher depends on DNS names of workers and is about to use them."""
    job, mode = plan.job, plan.arrangement.launch_mode
    if mode in {"in-place", "guard"}:
        return mode == "guard"
    gated = any(pod.gated for pod in seen.launcher_pods)
    enough = len(seen.serving_workers(job, mode)) >= elastic.enough_workers(job)
    return elastic.of_job(job) is not None or (gated and enough)


def pods_are_to_start(job: Job, seen: Observed) -> bool:
    """Whether pods are missing, or have a node and do not run yet: a kubelet waits for ever for a Secret that is not
    there.
    """
    if job.run_policy.suspend:
        return False
    pods = (*seen.workers, *seen.launcher_pods)
    return len(seen.workers) < job.workers or any(pod.phase == "Pending" and pod.node for pod in pods)
