"""What a running job's launcher is told of its workers as they come and go: discovery script and addresses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mpiboot.controller.view import digest
from mpiboot.job import elastic, names, objects

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.controller.observe import Observed
    from mpiboot.job.model import Job
    from mpiboot.job.plan import Plan

MOST_TEXT = 100_000  # bytes of addresses; all annotations of an object may have 256 kB


@dataclass(frozen=True)
class News:
    """The ConfigMap's data and the addresses as they should be. Not `due`: what differs may wait a moment.

    `nudge` marks launchers that shall see the data soon; empty where they hear of workers by themselves.
    """

    data: Mapping[str, Any]
    addresses: str
    nudge: str = ""
    due: bool = True

    def differ(self, seen: Observed) -> bool:
        """Whether the cluster still shows something else."""
        launchers = (pod for pod in seen.launcher_pods if not pod.ended)
        stale = any(
            (self.addresses and pod.addresses != self.addresses)
            or (self.nudge and pod.phase == "Running" and pod.discovery != self.nudge)
            for pod in launchers
        )
        return stale or (seen.config_map is not None and seen.config_map.digest != digest(self.data))


def news(plan: Plan, seen: Observed, cluster_domain: str, *, due: bool = True) -> News:
    """The script lists the workers that can take a rank, so that an elastic launcher does not try others."""
    job = plan.job
    size = elastic.of_job(job)
    # An elastic launcher starts ranks on whoever is listed, so their SSH must answer, and by their name.
    running = seen.reachable_workers(job) if size else [p for p in seen.wanted_workers(job) if p.phase == "Running"]
    hosts = [names.host(names.worker(job.name, pod.index), job, cluster_domain) for pod in running]
    data = objects.config_data(as_launched(job, seen), hosts, cluster_domain)
    if plan.launcher_waits == "in-place":
        return News(data, addresses(job, seen, cluster_domain), due=due)
    return News(data, "", digest(data) if size else "", due)


def as_launched(job: Job, seen: Observed) -> Job:
    """The job as its launcher reads files: with the slots and the runtime that it was made for, whatever edits say.

    The ConfigMap itself tells, so an operator that is new here knows it too. A launcher that rests is made anew.
    """
    config = seen.config_map
    if seen.launcher is None or seen.launcher.suspended or config is None or config.written_for is None:
        return job
    slots, implementation = config.written_for
    return replace(
        job, slots_per_worker=slots, implementation=implementation, run_launcher_as_worker=config.launcher_works
    )


def addresses(job: Job, seen: Observed, cluster_domain: str) -> str:
    """The addresses that the cluster knows, one worker a line, for launchers that cannot hear the check-in service."""
    lines = (
        f"{names.host(names.worker(job.name, pod.index), job, cluster_domain)} {pod.ip}\n"
        for pod in seen.wanted_workers(job)
        if pod.ip and not pod.ended
    )
    text = "".join(lines)
    return text if len(text) <= MOST_TEXT else ""
