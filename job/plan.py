"""Every object a job needs, as plain data. Pure: the same job and keys give the same plan, and nothing is touched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiboot.job import keys, launcher, objects, trust, workers
from mpiboot.job.advice import advice
from mpiboot.job.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.job.material import SshMaterial
    from mpiboot.job.model import Job
    from mpiboot.job.problems import Problem
    from mpiboot.job.wishes import Waits


@dataclass(frozen=True)
class Plan:
    """Kubernetes manifests, JSON-able. They share parts with each other and the job's templates: copy before changing.

    `launcher_waits` says who holds mpirun back until the workers are ready: `mpiboot launch` in the launcher itself
    (in-place), whoever created the launcher (gate: its pods carry a scheduling gate), or nobody (off).
    """

    job: Job
    secret: Mapping[str, Any]
    config_map: Mapping[str, Any]
    service: Mapping[str, Any]
    workers: tuple[Mapping[str, Any], ...]
    launcher: Mapping[str, Any]  # a batch/v1 Job; its pod is spec.template
    launcher_waits: Waits
    warnings: tuple[Problem, ...] = ()


def plan(job: Job, material: SshMaterial, settings: Settings | None = None) -> Plan:
    """Everything the job needs. What pods mount comes first in a Plan: it must exist before any pod that mounts it."""
    settings = settings or Settings()
    waits = trust.launcher_waits(job, settings)
    # Names must resolve before a gated launcher starts, and under runLauncherAsWorker before it is ready itself.
    early = waits == "gate" or job.run_launcher_as_worker
    make = workers.maker(job, settings) if job.worker else None
    return Plan(
        job=job,
        secret=keys.secret(job, material),
        config_map=objects.config_map(job, settings),
        service=objects.service(job, publish_not_ready=early),
        workers=tuple(make(index) for index in range(job.workers)) if make else (),
        launcher=launcher.manifest(job, settings),
        launcher_waits=waits,
        warnings=tuple(advice(job, settings)),
    )
