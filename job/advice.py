"""What a user should know about a plan that can run but may surprise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpiboot.job import keys, pods, trust
from mpiboot.job.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mpiboot.job.model import Job
    from mpiboot.job.settings import Settings

REPLICAS = "spec.mpiReplicaSpecs"


def advice(job: Job, settings: Settings) -> Iterator[Problem]:
    """Warnings, each with the path it is about."""
    if pods.spec_of(job.launcher.template).get("restartPolicy"):
        yield warn(
            f"{REPLICAS}.Launcher.template.spec.restartPolicy",
            "Restart policy in pod template overridden by restart policy in replica spec",
            "SetPodTemplateRestartPolicy",
        )
    if job.slots == 0:
        yield warn("spec", "no host has a slot: mpirun can start no rank", "ValidationWarning")
    if trust.launcher_waits(job, settings) == "gate" and settings.gang_scheduler:
        message = f"a gated launcher cannot join the group that {settings.gang_scheduler} waits for"
        yield warn("metadata.annotations[mpiboot.dev/launch]", message, "ValidationWarning")
    for role, template in templates(job):
        container = pods.main_container(template, job.main_container)
        path = f"{REPLICAS}.{role}.template.spec"
        if not container.get("image"):
            yield warn(f"{path}.containers", "the container has no image", "ValidationWarning")
        context = pods.spec_of(template).get("securityContext") or {}
        private = keys.private_mode(job, template, container, copied=False)
        if context.get("fsGroup") is not None and private == keys.ROOT_ONLY and copies_nothing(job, settings, role):
            message = "makes the SSH key readable by a group, and root's ssh refuses such a key; leave it out"
            yield warn(f"{path}.securityContext.fsGroup", message, "ValidationWarning")


def warn(path: str, message: str, reason: str) -> Problem:
    return Problem(path, message, None, "warning", reason)


def templates(job: Job) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield "Launcher", job.launcher.template
    if job.worker:
        yield "Worker", job.worker.template


def copies_nothing(job: Job, settings: Settings, role: str) -> bool:
    """Whether a role uses the mounted key itself, mpiboot not being there to copy it."""
    if role == "Launcher":
        return trust.launcher_waits(job, settings) != "in-place"
    return not trust.worker_is_ours(job, settings)
