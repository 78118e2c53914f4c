"""Every object a job needs, as plain data. Pure: the same job and keys give the same plan, and nothing is touched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiboot.job.arrangement import Arrangement, arrange
from mpiboot.job.plan import keys, launcher, objects, pod_group, workers
from mpiboot.job.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpiboot.job.model import Job
    from mpiboot.job.plan.ssh_material import SshMaterial


@dataclass(frozen=True)
class Plan:
    """Manifests for Kubernetes, JSON-able. They share parts with each other and the job's templates: copy to change."""

    arrangement: Arrangement
    secret: Mapping[str, Any]
    config_map: Mapping[str, Any]
    service: Mapping[str, Any]
    workers: Sequence[Mapping[str, Any]]  # made when they are asked for: a job may have thousands
    launcher: Mapping[str, Any]  # a batch/v1 Job; its pod is spec.template
    pod_group: Mapping[str, Any] | None = None  # for a gang scheduler

    @property
    def job(self) -> Job:
        return self.arrangement.job


def plan(job: Job, material: SshMaterial, settings: Settings | None = None) -> Plan:
    """Everything the job needs. What pods mount comes first in a Plan: it must exist before any pod that mounts it."""
    arrangement = arrange(job, settings or Settings())
    # A launcher without mpiboot needs names before workers are Ready: a user's probe may look once in ten seconds.
    # Under runLauncherAsWorker it needs one before it is ready itself.
    early = arrangement.launch_mode in {"guard", "gate"} or job.run_launcher_as_worker
    return Plan(
        arrangement=arrangement,
        secret=keys.secret(arrangement, material),
        config_map=objects.config_map(arrangement),
        service=objects.service(job, publish_not_ready=early),
        workers=workers.Workers(arrangement) if job.worker else (),
        launcher=launcher.manifest(arrangement),
        pod_group=pod_group.manifest(arrangement, arrangement.gang) if arrangement.gang else None,
    )
