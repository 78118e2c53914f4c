"""What a running job's launcher is told of its workers as they come and go: discovery script and addresses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiboot.controller.view import digest
from mpiboot.job import discover, names, objects

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.controller.observe import Observed
    from mpiboot.job.model import Job
    from mpiboot.job.plan import Plan

MOST_TEXT = 100_000  # bytes of addresses; all annotations of an object may have 256 kB


@dataclass(frozen=True)
class News:
    """The ConfigMap's data and the addresses as they should be. Not `due`: what differs may wait a moment."""

    data: Mapping[str, Any]
    addresses: str
    due: bool = True

    def differ(self, seen: Observed) -> bool:
        """Whether the cluster still shows something else."""
        launchers = (pod for pod in seen.launcher_pods if not pod.ended)
        stale = any(self.addresses and pod.addresses != self.addresses for pod in launchers)
        return stale or (seen.config_map is not None and seen.config_map.digest != digest(self.data))


def news(plan: Plan, seen: Observed, cluster_domain: str, *, due: bool = True) -> News:
    """The script lists the workers that can take a rank, so that an elastic launcher does not try others."""
    job = plan.job
    here = (names.launcher_host(job, cluster_domain),) if job.run_launcher_as_worker else ()
    running = [pod.index for pod in seen.wanted_workers(job) if pod.phase == "Running"]
    hosts = (*here, *(names.host(names.worker(job.name, index), job, cluster_domain) for index in running))
    script = discover.script(hosts, job.slots_per_worker, job.dialect)
    known = addresses(job, seen, cluster_domain) if plan.launcher_waits == "in-place" else ""
    return News({**plan.config_map["data"], objects.DISCOVER: script}, known, due)


def addresses(job: Job, seen: Observed, cluster_domain: str) -> str:
    """The addresses that the cluster knows, one worker a line, for launchers that cannot hear the check-in service."""
    lines = (
        f"{names.host(names.worker(job.name, pod.index), job, cluster_domain)} {pod.ip}\n"
        for pod in seen.wanted_workers(job)
        if pod.ip and not pod.ended
    )
    text = "".join(lines)
    return text if len(text) <= MOST_TEXT else ""
