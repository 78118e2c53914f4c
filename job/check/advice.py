"""Warnings about a job that can be planned but may not do what its user expects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.job import elastic, job_annotations
from mpiboot.job.check import traps
from mpiboot.job.check.refused import refused, template_path
from mpiboot.job.elastic_faults import faults, too_few
from mpiboot.job.names import PRIVATE
from mpiboot.job.plan import keys, launcher, pods, workers
from mpiboot.job.problems import Problem
from mpiboot.job.template import mounted, spec_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mpiboot.job.arrangement import Arrangement, RoleArrangement
    from mpiboot.job.model import Job


def advice(arrangement: Arrangement) -> tuple[Problem, ...]:
    """Problems, each once and with the path of its field. An error: the API server or a node will refuse a pod."""
    # Launcher and workers of v1alpha1 have one template.
    return tuple(dict.fromkeys([*refused(arrangement), *warnings(arrangement)]))


def warnings(arrangement: Arrangement) -> Iterator[Problem]:
    job = arrangement.job
    launchers = template_path(job, "Launcher")
    if spec_of(job.launcher.template).get("restartPolicy"):
        yield warn(
            f"{launchers}.spec.restartPolicy",
            "Restart policy in pod template overridden by restart policy in replica spec",
            "SetPodTemplateRestartPolicy",
        )
    if job.slots == 0:
        yield warn("spec", "no host has a slot: mpirun can start no rank")
    if arrangement.launch_mode != "in-place":
        for name in job_annotations.VARIABLES:
            if name in job.annotations:
                message = "has no effect: only a launcher whose image holds mpiboot can do that"
                yield warn(f"metadata.annotations[{name}]", message)
    yield from traps.traps(arrangement)
    size = elastic.of_job(job)
    if size:
        few = too_few(size, job.workers, job.slots_per_worker)
        hint = f"{few}: the job waits until Worker.replicas is raised"
        yield from (warn(launchers, each) for each in (*faults(size, job.slots_per_worker), *([hint] if few else [])))
    yield from of_role(job, "Launcher", arrangement.launcher, launcher.additions(arrangement))
    if arrangement.worker:
        yield from of_role(job, "Worker", arrangement.worker, workers.additions(arrangement))


def of_role(job: Job, name: str, role: RoleArrangement, added: pods.Additions) -> Iterator[Problem]:
    """Warnings about one template."""
    container = role.container
    spec = f"{template_path(job, name)}.spec"
    path = f"{spec}.containers[{role.position}]"
    for variable in added.environment.lost(container.get("env") or ()):
        yield warn(f"{path}.env", f"{variable} is set by mpiboot; the value given here is not used")
    for volume in added.volumes:
        if mounted(container, volume.path):
            message = f"{volume.path} is mounted here, so the job's volume {volume.name} is not"
            yield warn(f"{path}.volumeMounts", message)
    context = spec_of(role.template).get("securityContext") or {}
    if keys.private_files(job, role)[PRIVATE] == keys.ROOT_ONLY and context.get("fsGroup") is not None:
        message = "makes the SSH key readable by a group, and root's ssh refuses such a key; leave it out"
        yield warn(f"{spec}.securityContext.fsGroup", message)


def warn(path: str, message: str, reason: str = "") -> Problem:
    return Problem(path, message, None, "warning", reason)
