"""The objects of one job that exist now."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from mpiboot.job import elastic, names
from mpiboot.kube.pod_projection import is_failed_launcher

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mpiboot.controller.cache import Cache
    from mpiboot.job.job_annotations import LaunchMode
    from mpiboot.job.model import Job
    from mpiboot.kube.job_projection import JobView, Outcome
    from mpiboot.kube.pod_projection import PodView
    from mpiboot.kube.projections import BaseView, ConfigMapView, MpiJobView, ObjectView, PodGroupView

Owned = TypeVar("Owned", bound="BaseView")
LAUNCHER_JOB = "launcherJob"  # field of a status: the uid of the launcher's Job while its program may run


@dataclass(frozen=True)
class Caches:
    """All that the operator watches."""

    mpi_jobs: Cache[MpiJobView]
    jobs: Cache[JobView]
    pods: Cache[PodView]
    services: Cache[ObjectView]
    config_maps: Cache[ConfigMapView]
    pod_groups: Cache[PodGroupView] | None = None  # without a gang scheduler there are none

    def all(self) -> Mapping[str, Cache[Any]]:
        return {name: cache for name, cache in vars(self).items() if cache is not None}


@dataclass(frozen=True)
class Observed:
    """A job's objects. Workers are in the order of their indexes, those that are being deleted included."""

    view: MpiJobView
    launcher: JobView | None = None
    launcher_pods: tuple[PodView, ...] = ()
    workers: tuple[PodView, ...] = ()
    service: ObjectView | None = None
    config_map: ConfigMapView | None = None
    pod_group: PodGroupView | None = None
    failed_launchers: tuple[PodView, ...] = ()  # in the order of time, deleted ones included
    lost_launcher: bool = False  # its Job is gone, and the operator has not seen how it was in the end
    unnamed: frozenset[str] = frozenset()  # serving workers whose names DNS does not know yet
    # One look asks many times, and a job may have thousands of workers.
    _found: dict[tuple[str, int], tuple[PodView, ...]] = field(default_factory=dict, compare=False, repr=False)

    def wanted_workers(self, job: Job) -> tuple[PodView, ...]:
        """The workers that count: not being deleted, and within the number that the job asks for."""
        mark = ("wanted", job.workers)
        if mark not in self._found:
            wanted = (pod for pod in self.workers if not pod.meta.deleting and 0 <= pod.index < job.workers)
            self._found[mark] = tuple(wanted)
        return self._found[mark]

    def ready_workers(self, job: Job) -> tuple[PodView, ...]:
        mark = ("ready", job.workers)
        if mark not in self._found:
            self._found[mark] = tuple(pod for pod in self.wanted_workers(job) if pod.ready and not pod.ended)
        return self._found[mark]

    def all_ready(self, job: Job) -> bool:
        return len(self.ready_workers(job)) == job.workers

    def enough_ready(self, job: Job) -> bool:
        """Whether the launcher can begin: all workers are ready, or as many as an elastic job needs."""
        return len(self.ready_workers(job)) >= elastic.enough_workers(job)

    def serving_workers(self, job: Job, mode: LaunchMode) -> tuple[PodView, ...]:
        """The workers that a launcher without mpiboot may use. A user's readiness probe does not decide it: it may
        begin late and look seldom. A script in the launcher tries each worker by itself; for a gate, the startup probe
        that its plan adds has seen sshd.
        """
        if mode not in {"guard", "gate"}:
            return self.ready_workers(job)
        return tuple(
            pod
            for pod in self.wanted_workers(job)
            if not pod.ended and (pod.ready or (pod.probed if mode == "gate" else pod.started and bool(pod.ip)))
        )

    def reachable_workers(self, job: Job, mode: LaunchMode) -> tuple[PodView, ...]:
        """The workers that such a launcher can log in to: it has only their names."""
        return tuple(pod for pod in self.serving_workers(job, mode) if pod.name not in self.unnamed)


def observe(caches: Caches, view: MpiJobView) -> Observed:
    """What the caches hold of a job, without objects that have its labels but another owner."""
    key, uid, groups = view.key, view.meta.uid, caches.pod_groups
    name = names.launcher(view.name)
    launcher = _owned(caches.jobs.of(key).get(name), uid)
    deleted = _owned(caches.jobs.gone(key).get(name), uid)
    pods = [pod for pod in caches.pods.of(key).values() if pod.meta.owner]
    if launcher is None and deleted and (end := _outcome(deleted, pods)):
        launcher = replace(deleted, outcome=end)
    elif launcher and not launcher.outcome:
        launcher = replace(launcher, outcome=_outcome(launcher, pods))
    mark = (view.raw.get("status") or {}).get(LAUNCHER_JOB)
    workers = [pod for pod in pods if pod.meta.owner and pod.meta.owner.uid == uid]
    launcher_pods = _of_launcher(launcher, pods)
    gone = _of_launcher(launcher, caches.pods.gone(key).values())
    return Observed(
        view=view,
        launcher=launcher,
        launcher_pods=launcher_pods,
        lost_launcher=bool(mark) and launcher is None and not (deleted and deleted.meta.uid == mark),
        failed_launchers=_in_time(filter(is_failed_launcher, (*gone, *launcher_pods))),
        workers=tuple(sorted(workers, key=lambda pod: pod.index)),
        service=_owned(caches.services.of(key).get(names.service(view.name)), uid),
        config_map=_owned(caches.config_maps.of(key).get(names.config_map(view.name)), uid),
        pod_group=_owned(groups.of(key).get(names.pod_group(view.name)), uid) if groups else None,
    )


def _outcome(launcher: JobView, pods: Iterable[PodView]) -> Outcome:
    """How a launcher's Job ended, or will: one pod that has succeeded is all that it needs. The Job controller writes
    that a second or two later, and never for a Job that a user has deleted.
    """
    if any(pod.phase == "Succeeded" for pod in _of_launcher(launcher, pods)):
        return "Complete"
    return launcher.outcome


def _of_launcher(launcher: JobView | None, pods: Iterable[PodView]) -> tuple[PodView, ...]:
    return _in_time(p for p in pods if launcher and p.meta.owner and p.meta.owner.uid == launcher.meta.uid)


def _in_time(pods: Iterable[PodView]) -> tuple[PodView, ...]:
    return tuple(sorted(pods, key=lambda pod: (pod.meta.created, pod.name)))


def _owned(found: Owned | None, uid: str) -> Owned | None:
    return found if found and found.meta.owner and found.meta.owner.uid == uid else None
