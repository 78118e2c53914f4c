"""Gang scheduling: which scheduler starts a job's pods all together, and how many of them it waits for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mpiboot.job import elastic, job_annotations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.job.job_annotations import LaunchMode
    from mpiboot.job.model import Job

VOLCANO, PLUGINS = "volcano", "scheduler-plugins"
PLUGINS_SCHEDULER = "scheduler-plugins-scheduler"  # its name in the chart of the scheduler plugins


@dataclass(frozen=True)
class Scheduler:
    """A gang scheduler: its name in pods, the API version of its PodGroups, and the mark of a group's pods."""

    name: str
    api_version: str
    group_label: str = ""
    group_annotation: str = ""

    def labels(self, group: str) -> Mapping[str, str]:
        return {self.group_label: group} if self.group_label else {}

    def annotations(self, group: str) -> Mapping[str, str]:
        return {self.group_annotation: group} if self.group_annotation else {}


@dataclass(frozen=True)
class Gang:
    """How one job is scheduled as a gang. `members`: with fewer pods none of them starts."""

    scheduler: Scheduler
    members: int
    with_launcher: bool  # the launcher is one of the members


@dataclass(frozen=True)
class SchedulingPolicy:
    """What a job asks of a gang scheduler. None, "" and no resources: the operator decides."""

    min_available: int | None = None
    queue: str = ""
    min_resources: Mapping[str, object] = field(default_factory=dict)
    priority_class: str = ""
    schedule_timeout_seconds: int | None = None


def scheduler(setting: str) -> Scheduler | None:
    """The scheduler that an installation names: volcano, scheduler-plugins, or one with these plugins by its name."""
    if not setting:
        return None
    if setting == VOLCANO:
        annotation = "scheduling.k8s.io/group-name"
        return Scheduler(VOLCANO, "scheduling.volcano.sh/v1beta1", group_annotation=annotation)
    name = PLUGINS_SCHEDULER if setting == PLUGINS else setting
    return Scheduler(name, "scheduling.x-k8s.io/v1alpha1", group_label="scheduling.x-k8s.io/pod-group")


def of_job(job: Job, setting: str, mode: LaunchMode) -> Gang | None:
    """The job's gang; None if its pods are scheduled one by one.

    A scheduler does not count a pod that does not exist yet or has a scheduling gate. If it waited for such a launcher,
    and the launcher for the workers, neither would ever start. So the launcher counts only if it waits in place.
    """
    found = scheduler(setting)
    if found is None or job_annotations.gang_scheduling(job.annotations) == "off":
        return None
    with_launcher = mode != "gate" and job.launcher_creation_policy == "AtStartup"
    most = job.workers + with_launcher
    wanted = job.run_policy.scheduling_policy.min_available
    if wanted is None:
        wanted = elastic.enough_workers(job) + with_launcher
    return Gang(found, max(1, min(wanted, most)), with_launcher)
