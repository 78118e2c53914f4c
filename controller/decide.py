"""From what a job wants and what there is to what is to be done. Pure: nothing here touches the cluster or a clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.controller import kinds
from mpiboot.controller.action import Action, Create, Delete, Patch, Resume, Stage
from mpiboot.controller.api import MERGE, STRATEGIC
from mpiboot.controller.observe import enough
from mpiboot.controller.remake import marked, outdated
from mpiboot.controller.status import is_finished
from mpiboot.controller.view import digest, service_contents
from mpiboot.job import objects, wishes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mpiboot.controller.observe import Observed
    from mpiboot.controller.publish import News
    from mpiboot.controller.view_pod import PodView
    from mpiboot.job.plan import Plan


def decide(
    plan: Plan,
    seen: Observed,
    news: News,
    *,
    has_secret: bool,
    replace: Sequence[PodView] = (),
    remove_launcher: bool = False,
) -> tuple[Stage, ...]:
    """What is to be done now, in stages; empty when all is as it should be. `replace`: dead workers to remove.

    `remove_launcher`: the time is over for which a launcher that we ended stays.

    What pods mount comes first: a kubelet that misses it backs off for up to 2 s.
    """
    job = plan.job
    if is_finished(seen.view.raw.get("status") or {}):
        return _stages(tuple(_after_the_end(plan, seen, remove_launcher=remove_launcher)))
    if seen.launcher and seen.launcher.outcome:
        return ()  # first the outcome goes into the status, so that nobody runs the job a second time
    foundation = tuple(_foundation(plan, seen, news, has_secret=has_secret))
    if job.run_policy.suspend:
        return _stages(foundation, tuple(_suspended(plan, seen)))
    pods = (*_launcher(plan, seen), *_workers(plan, seen, replace))
    return _stages(foundation, pods, (*_gates(plan, seen), *_addresses(seen, news), *_nudges(seen, news)))


def _stages(*groups: tuple[Action, ...]) -> tuple[Stage, ...]:
    return tuple(Stage(actions) for actions in groups if actions)


def _foundation(plan: Plan, seen: Observed, news: News, *, has_secret: bool) -> Iterator[Action]:
    if seen.service is None:
        yield Create(kinds.SERVICE, plan.service)
    elif seen.service.digest != digest(service_contents(plan.service)):
        spec = plan.service["spec"]
        wanted = {
            "selector": {"$patch": "replace", **spec["selector"]},
            "publishNotReadyAddresses": bool(spec.get("publishNotReadyAddresses")),
        }
        yield Patch(kinds.SERVICE, seen.service.name, {"spec": wanted}, STRATEGIC)
    if seen.config_map is None:
        yield Create(kinds.CONFIG_MAP, {**plan.config_map, "data": news.data})
    elif news.due and seen.config_map.digest != digest(news.data):
        # A suspended job's launcher may have been told to take no ranks any more.
        data = {objects.LAUNCHERS_HOSTFILE: None, **news.data}
        yield Patch(kinds.CONFIG_MAP, seen.config_map.name, {"data": data}, MERGE)
    if not has_secret:
        yield Create(kinds.SECRET, plan.secret)


def _launcher(plan: Plan, seen: Observed) -> Iterator[Action]:
    job, launcher = plan.job, seen.launcher
    if launcher is None:
        waits_here = job.launcher_creation_policy == "WaitForWorkersReady"
        # Its gate opens at once, and holds back what comes after it.
        if not waits_here or seen.enough_ready(job):
            yield Create(kinds.JOB, marked(plan.launcher))
    elif launcher.suspended and not launcher.meta.deleting:
        if not outdated(launcher, plan.launcher):
            yield Resume(launcher.name, plan.launcher["spec"]["template"])
        elif all(pod.ended for pod in seen.launcher_pods):
            # Its name is free when it is gone. A pod of it that still ends may hold the job's ports and files.
            yield Delete(kinds.JOB, launcher.name, launcher.meta.uid)


def _workers(plan: Plan, seen: Observed, replace: Sequence[PodView]) -> Iterator[Action]:
    there = {pod.name for pod in seen.workers}
    for manifest in plan.workers:
        if manifest["metadata"]["name"] not in there:
            yield Create(kinds.POD, manifest)
    for pod in reversed(seen.workers):
        if pod.index >= plan.job.workers and not pod.meta.deleting:
            yield Delete(kinds.POD, pod.name, pod.meta.uid)
    # Its name is free when it is gone.
    yield from (Delete(kinds.POD, pod.name, pod.meta.uid) for pod in replace)


def _suspended(plan: Plan, seen: Observed) -> Iterator[Action]:
    launcher = seen.launcher
    if launcher is None:
        yield Create(kinds.JOB, marked(plan.launcher))
    elif not launcher.suspended:
        yield Patch(kinds.JOB, launcher.name, {"spec": {"suspend": True}}, MERGE)
    yield from (Delete(kinds.POD, pod.name, pod.meta.uid) for pod in seen.workers if not pod.meta.deleting)


def _gates(plan: Plan, seen: Observed) -> Iterator[Action]:
    """Gates open for good: a launcher that was let go is not held back by a worker that fails later."""
    if len(seen.reachable_workers(plan.job)) >= enough(plan.job):
        opened = {"spec": {"schedulingGates": [{"$patch": "delete", "name": wishes.GATE}]}}
        for pod in seen.launcher_pods:
            if pod.gated and not pod.meta.deleting:
                yield Patch(kinds.POD, pod.name, opened, STRATEGIC)


def _addresses(seen: Observed, news: News) -> Iterator[Action]:
    if not news.addresses or not news.due:
        return
    for pod in seen.launcher_pods:
        if not pod.ended and not pod.meta.deleting and pod.addresses != news.addresses:
            yield Patch(kinds.POD, pod.name, {"metadata": {"annotations": {wishes.ADDRESSES: news.addresses}}}, MERGE)


def _nudges(seen: Observed, news: News) -> Iterator[Action]:
    """A kubelet looks at a mounted ConfigMap once a minute or so, and at once when the pod itself changes."""
    if not news.nudge or not news.due:
        return
    for pod in seen.launcher_pods:
        if pod.phase == "Running" and not pod.meta.deleting and pod.discovery != news.nudge:
            yield Patch(kinds.POD, pod.name, {"metadata": {"annotations": {wishes.DISCOVERY: news.nudge}}}, MERGE)


def _after_the_end(plan: Plan, seen: Observed, *, remove_launcher: bool) -> Iterator[Action]:
    policy = plan.job.run_policy
    if remove_launcher and seen.launcher and not seen.launcher.meta.deleting:
        yield Delete(kinds.JOB, seen.launcher.name, seen.launcher.meta.uid)
    elif seen.launcher and not seen.launcher.outcome and not seen.launcher.suspended:
        # The job failed before its launcher did: without workers that one would wait for ever.
        yield Patch(kinds.JOB, seen.launcher.name, {"spec": {"suspend": True}}, MERGE)
    for pod in seen.workers:
        if pod.meta.deleting or policy.clean_pod_policy == "None":
            continue
        # A pending pod could still start; what has ended is kept for its logs, unless all is to go.
        if policy.clean_pod_policy == "All" or not pod.ended:
            yield Delete(kinds.POD, pod.name, pod.meta.uid)
    ttl, launcher = policy.ttl_seconds_after_finished, seen.launcher
    if ttl is not None and launcher and launcher.outcome and launcher.ttl != ttl:
        # Not earlier: were the Job to go before its outcome is in the status, it would be run again.
        yield Patch(kinds.JOB, launcher.name, {"spec": {"ttlSecondsAfterFinished": ttl}}, MERGE)
