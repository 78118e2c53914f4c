"""What a running launcher receives about its workers as they change: discovery script and addresses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mpiboot.job import elastic, names
from mpiboot.job.plan import objects
from mpiboot.kube.projections import digest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.controller.observe import Observed
    from mpiboot.job.job_annotations import LaunchMode
    from mpiboot.job.model import Job
    from mpiboot.job.plan.plan import Plan

MOST_TEXT = 100_000  # bytes of addresses; all annotations of an object may have 256 kB


@dataclass(frozen=True)
class News:
    """The ConfigMap's data and the addresses as they should be. If not `due`, a difference may wait a moment.

    `refresh_mark` is the annotation of launchers that need the data soon; empty for launchers that check in.
    """

    data: Mapping[str, Any]
    addresses: str
    refresh_mark: str = ""
    due: bool = True

    def differ(self, seen: Observed) -> bool:
        """Whether the objects in the cluster differ from this."""
        launchers = (pod for pod in seen.launcher_pods if not pod.ended)
        stale = any(
            (self.addresses and pod.addresses != self.addresses)
            or (self.refresh_mark and pod.phase == "Running" and pod.discovery != self.refresh_mark)
            for pod in launchers
        )
        return stale or (seen.config_map is not None and seen.config_map.digest != digest(self.data))


def news(plan: Plan, seen: Observed, cluster_domain: str, *, due: bool = True) -> News:
    """The data for a launcher now. The script lists only workers that can take a rank."""
    job, mode = plan.job, plan.arrangement.launch_mode
    size = elastic.of_job(job)
    # An elastic launcher starts ranks on every listed worker, so each must answer SSH, under its name.
    running = (
        seen.reachable_workers(job, mode) if size else [p for p in seen.wanted_workers(job) if p.phase == "Running"]
    )
    hosts = [names.host(names.worker(job.name, pod.index), job, cluster_domain) for pod in running]
    data = objects.config_data(plan.arrangement, as_launched(job, seen), hosts)
    if plan.arrangement.waits_by_itself:
        return News(data, addresses(job, seen, cluster_domain, mode), due=due)
    return News(data, "", digest(data) if size else "", due)


def as_launched(job: Job, seen: Observed) -> Job:
    """The job with the slots and the runtime that its launcher was made for, without later edits.

    They stand in the ConfigMap, so a restarted operator knows them too. A suspended launcher is made again.
    """
    config = seen.config_map
    if seen.launcher is None or seen.launcher.suspended or config is None or config.written_for is None:
        return job
    slots, implementation = config.written_for
    return replace(
        job, slots_per_worker=slots, implementation=implementation, run_launcher_as_worker=config.launcher_works
    )


def addresses(job: Job, seen: Observed, cluster_domain: str, mode: LaunchMode) -> str:
    """The workers' addresses, one worker a line, for launchers that cannot reach the check-in service."""
    known = seen.reachable_workers(job, mode) if mode == "guard" else seen.wanted_workers(job)
    lines = (
        f"{names.host(names.worker(job.name, pod.index), job, cluster_domain)} {pod.ip}\n"
        for pod in known
        if pod.ip and not pod.ended
    )
    text = "".join(lines)
    return text if len(text) <= MOST_TEXT else ""
