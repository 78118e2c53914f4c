"""Compare what a job wants with what exists, and return the actions. Pure: no cluster, no clock."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from mpiboot.job import elastic, job_annotations, names
from mpiboot.job.plan import objects, pod_group
from mpiboot.kube import kinds
from mpiboot.kube.kinds import MERGE, STRATEGIC
from mpiboot.kube.projections import MADE_FROM, digest, service_contents

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mpiboot.controller.launcher_news import News
    from mpiboot.controller.observe import Observed
    from mpiboot.job.model import Job
    from mpiboot.job.plan.plan import Plan
    from mpiboot.kube.job_projection import JobView
    from mpiboot.kube.kinds import Kind
    from mpiboot.kube.pod_projection import PodView

MOST_AT_ONCE = 1000  # workers that one look creates: their manifests are in memory meanwhile; the next look goes on


@dataclass(frozen=True)
class Create:
    """Create an object. An object of that name with another owner stops the job."""

    kind: Kind
    manifest: Mapping[str, Any]

    def __str__(self) -> str:
        return f"create {self.kind.name} {self.manifest['metadata']['name']}"


@dataclass(frozen=True)
class Delete:
    """Remove the object of this uid."""

    kind: Kind
    name: str
    uid: str

    def __str__(self) -> str:
        return f"delete {self.kind.name} {self.name}"


@dataclass(frozen=True)
class Patch:
    """Change some fields of an object."""

    kind: Kind
    name: str
    patch: Mapping[str, Any]
    form: str

    def __str__(self) -> str:
        return f"change {self.kind.name} {self.name}"


@dataclass(frozen=True)
class Resume:
    """Resume a suspended batch Job, with the scheduling fields that its MPIJob has now."""

    name: str
    template: Mapping[str, Any]

    def __str__(self) -> str:
        return f"resume Job {self.name}"


Action = Create | Delete | Patch | Resume


@dataclass(frozen=True)
class Stage:
    """Actions that may run at the same time. The next stage begins when all of them are done."""

    actions: tuple[Action, ...]


def decide(
    plan: Plan,
    seen: Observed,
    news: News,
    *,
    has_secret: bool,
    replace: Sequence[PodView] = (),
) -> tuple[Stage, ...]:
    """The actions for a job that has not finished, in stages; empty if nothing has to change.

    `replace`: dead workers to delete.

    What pods mount comes first: a kubelet that does not find it waits for up to 2 s.
    """
    job = plan.job
    if seen.lost_launcher or (seen.launcher and seen.launcher.outcome):
        return ()  # the outcome must be in the status first: otherwise the job could run a second time
    foundation = tuple(_foundation(plan, seen, news, has_secret=has_secret))
    if job.run_policy.suspend:
        return _stages(foundation, tuple(_suspended(plan, seen)))
    foundation += tuple(_pod_group(plan, seen))
    pods = (*_launcher(plan, seen), *_workers(plan, seen, replace))
    return _stages(foundation, pods, (*_gates(plan, seen), *_addresses(seen, news), *_refreshes(seen, news)))


def after_the_end(job: Job, seen: Observed, *, remove_launcher: bool = False) -> tuple[Stage, ...]:
    """The actions for a job that has finished. `remove_launcher`: its launcher's TTL is over."""
    return _stages(tuple(_after_the_end(job, seen, remove_launcher=remove_launcher)))


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
        # An edit of a suspended job may have switched runLauncherAsWorker off.
        data = {objects.LAUNCHERS_HOSTFILE: None, **news.data}
        yield Patch(kinds.CONFIG_MAP, seen.config_map.name, {"data": data}, MERGE)
    if not has_secret:
        yield Create(kinds.SECRET, plan.secret)


def _pod_group(plan: Plan, seen: Observed) -> Iterator[Action]:
    wanted, found = plan.pod_group, seen.pod_group
    if wanted is None:
        return
    made = digest(wanted["spec"])
    if found is None:
        yield Create(kinds.POD_GROUPS[wanted["apiVersion"]], {**wanted, "metadata": _marked(wanted["metadata"], made)})
    elif found.digest not in ("", made):
        # The scheduler keeps its own fields there: only ours change, and those that the job no longer gives go.
        spec = {**dict.fromkeys(pod_group.FIELDS), **wanted["spec"]}
        change = {"metadata": {"annotations": {MADE_FROM: made}}, "spec": spec}
        yield Patch(kinds.POD_GROUPS[wanted["apiVersion"]], found.name, change, MERGE)


def _launcher(plan: Plan, seen: Observed) -> Iterator[Action]:
    job, launcher = plan.job, seen.launcher
    if launcher is None:
        waits_here = job.launcher_creation_policy == "WaitForWorkersReady"
        # Its gate opens at once: all workers are ready.
        if not waits_here or seen.enough_ready(job):
            yield Create(kinds.JOB, marked(plan.launcher))
    elif launcher.suspended and not launcher.meta.deleting:
        if not outdated(launcher, plan.launcher):
            yield Resume(launcher.name, plan.launcher["spec"]["template"])
        elif all(pod.ended for pod in seen.launcher_pods):
            # The next look creates the new Job. A pod that is still ending may hold the job's ports and files.
            yield Delete(kinds.JOB, launcher.name, launcher.meta.uid)


def _workers(plan: Plan, seen: Observed, replace: Sequence[PodView]) -> Iterator[Action]:
    there = {pod.name for pod in seen.workers}
    missing = (index for index in range(len(plan.workers)) if names.worker(plan.job.name, index) not in there)
    yield from (Create(kinds.POD, plan.workers[index]) for index in islice(missing, MOST_AT_ONCE))
    for pod in reversed(seen.workers):
        if pod.index >= plan.job.workers and not pod.meta.deleting:
            yield Delete(kinds.POD, pod.name, pod.meta.uid)
    # The next look creates the new worker: the name is free then.
    yield from (Delete(kinds.POD, pod.name, pod.meta.uid) for pod in replace)


def _suspended(plan: Plan, seen: Observed) -> Iterator[Action]:
    launcher = seen.launcher
    if launcher is None:
        yield Create(kinds.JOB, marked(plan.launcher))
    elif not launcher.suspended:
        yield Patch(kinds.JOB, launcher.name, {"spec": {"suspend": True}}, MERGE)
    yield from (Delete(kinds.POD, pod.name, pod.meta.uid) for pod in seen.workers if not pod.meta.deleting)
    yield from _without_pod_group(seen)


def _without_pod_group(seen: Observed) -> Iterator[Action]:
    """A group that no pod will join would keep its place in a scheduler's queue."""
    if (found := seen.pod_group) and not found.meta.deleting:
        yield Delete(kinds.POD_GROUPS[found.api_version], found.name, found.meta.uid)


def _gates(plan: Plan, seen: Observed) -> Iterator[Action]:
    """Open gates once and for all: a worker that fails later does not hold back a launcher that was released."""
    if len(seen.reachable_workers(plan.job, plan.arrangement.launch_mode)) >= elastic.enough_workers(plan.job):
        opened = {"spec": {"schedulingGates": [{"$patch": "delete", "name": job_annotations.GATE}]}}
        for pod in seen.launcher_pods:
            if pod.gated and not pod.meta.deleting:
                yield Patch(kinds.POD, pod.name, opened, STRATEGIC)


def _addresses(seen: Observed, news: News) -> Iterator[Action]:
    if not news.addresses or not news.due:
        return
    for pod in seen.launcher_pods:
        if not pod.ended and not pod.meta.deleting and pod.addresses != news.addresses:
            change = {"metadata": {"annotations": {job_annotations.ADDRESSES: news.addresses}}}
            yield Patch(kinds.POD, pod.name, change, MERGE)


def _refreshes(seen: Observed, news: News) -> Iterator[Action]:
    """A kubelet reads a mounted ConfigMap about once a minute, and at once when the pod itself changes."""
    if not news.refresh_mark or not news.due:
        return
    for pod in seen.launcher_pods:
        if pod.phase == "Running" and not pod.meta.deleting and pod.discovery != news.refresh_mark:
            change = {"metadata": {"annotations": {job_annotations.DISCOVERY: news.refresh_mark}}}
            yield Patch(kinds.POD, pod.name, change, MERGE)


def _after_the_end(job: Job, seen: Observed, *, remove_launcher: bool) -> Iterator[Action]:
    policy = job.run_policy
    if remove_launcher and seen.launcher and not seen.launcher.meta.deleting:
        yield Delete(kinds.JOB, seen.launcher.name, seen.launcher.meta.uid)
    elif seen.launcher and not seen.launcher.outcome and not seen.launcher.suspended:
        # The job failed before its launcher did: without workers the launcher would wait for ever.
        yield Patch(kinds.JOB, seen.launcher.name, {"spec": {"suspend": True}}, MERGE)
    for pod in seen.workers:
        if pod.meta.deleting or policy.clean_pod_policy == "None":
            continue
        # A pending pod could still start. A pod that has ended is kept for its logs, unless the policy is All.
        if policy.clean_pod_policy == "All" or not pod.ended:
            yield Delete(kinds.POD, pod.name, pod.meta.uid)
    yield from _without_pod_group(seen)
    ttl, launcher = policy.ttl_seconds_after_finished, seen.launcher
    if ttl is not None and launcher and launcher.outcome and launcher.ttl != ttl:
        # Not earlier: a Job that is deleted before its outcome is in the status would run again.
        yield Patch(kinds.JOB, launcher.name, {"spec": {"ttlSecondsAfterFinished": ttl}}, MERGE)


# Only these fields, labels and annotations of a pod template may change, and only while its Job is suspended.
FOLLOWED = ("nodeSelector", "tolerations", "schedulingGates", "affinity")


def marked(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The Job with a digest of its manifest: the API server adds defaults, so the stored Job cannot be compared."""
    return {**manifest, "metadata": _marked(manifest["metadata"], made_from(manifest))}


def _marked(metadata: Mapping[str, Any], made: str) -> dict[str, Any]:
    return {**metadata, "annotations": {**metadata.get("annotations", {}), MADE_FROM: made}}


def outdated(launcher: JobView, manifest: Mapping[str, Any]) -> bool:
    """Whether the Job has to be replaced to become what is wanted now. A Job without a digest stays as it is."""
    return launcher.made_from not in ("", made_from(manifest))


def made_from(manifest: Mapping[str, Any]) -> str:
    spec = manifest["spec"]
    pod = {name: value for name, value in spec["template"]["spec"].items() if name not in FOLLOWED}
    limits = {name: value for name, value in spec.items() if name not in {"suspend", "template"}}
    return digest([limits, pod])
