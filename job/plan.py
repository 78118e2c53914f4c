"""Every object a job needs, as plain data. Pure: the same job and keys give the same plan, and nothing is touched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.job.model import Job
    from mpiboot.job.problems import Problem

Waits = Literal["in-place", "gate", "off"]


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
