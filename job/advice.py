"""What a user should know about a plan that can run but may surprise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.job import elastic, keys, launcher, pods, traps, trust, workers
from mpiboot.job.elastic_faults import faults, too_few
from mpiboot.job.keyfiles import PRIVATE
from mpiboot.job.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from mpiboot.job.model import Job
    from mpiboot.job.settings import Settings


def advice(job: Job, settings: Settings) -> Iterator[Problem]:
    """Warnings, each with the path it is about."""
    if pods.spec_of(job.launcher.template).get("restartPolicy"):
        yield warn(
            "spec.mpiReplicaSpecs.Launcher.template.spec.restartPolicy",
            "Restart policy in pod template overridden by restart policy in replica spec",
            "SetPodTemplateRestartPolicy",
        )
    if job.slots == 0:
        yield warn("spec", "no host has a slot: mpirun can start no rank")
    yield from traps.traps(job, settings)
    size = elastic.of_job(job)
    if size:
        few = too_few(size, job.workers, job.slots_per_worker)
        hint = f"{few}: it waits until its Worker.replicas are raised"
        path = "spec.mpiReplicaSpecs.Launcher.template"
        yield from (warn(path, each) for each in (*faults(size, job.slots_per_worker), *([hint] if few else [])))
    waits = trust.launcher_waits(job, settings)
    if waits == "gate" and settings.gang_scheduler:
        message = f"a gated launcher cannot join the group that {settings.gang_scheduler} waits for"
        yield warn("metadata.annotations[mpiboot.dev/launch]", message)
    added = launcher.additions(job, settings)
    yield from of_role(job, "Launcher", job.launcher.template, added, copies=waits == "in-place")
    if job.worker:
        added = workers.additions(job, job.worker, settings)
        copies = trust.worker_is_ours(job, settings)
        yield from of_role(job, "Worker", job.worker.template, added, copies=copies)


def of_role(
    job: Job, role: str, template: Mapping[str, Any], added: pods.Additions, *, copies: bool
) -> Iterator[Problem]:
    """Warnings about one template. `copies`: mpiboot copies the SSH key before it uses it."""
    container = pods.main_container(template, job.main_container)
    spec = f"spec.mpiReplicaSpecs.{role}.template.spec"
    path = f"{spec}.containers[{pods.main_index(template, job.main_container)}]"
    if not container.get("image"):
        yield warn(f"{path}.image", "must be given: the pod will be refused")
    for name in added.environment.lost(container.get("env") or ()):
        yield warn(f"{path}.env", f"{name} is set by the job, the value given here is not used")
    for volume in added.volumes:
        if pods.mounted(container, volume.path):
            yield warn(f"{path}.volumeMounts", f"{volume.path} is mounted here, so {volume.name} of the job is not")
    context = pods.spec_of(template).get("securityContext") or {}
    private = keys.private_files(job, template, container, copied=copies)
    if private[PRIVATE] == keys.ROOT_ONLY and context.get("fsGroup") is not None:
        message = "makes the SSH key readable by a group, and root's ssh refuses such a key; leave it out"
        yield warn(f"{spec}.securityContext.fsGroup", message)


def warn(path: str, message: str, reason: str = "") -> Problem:
    return Problem(path, message, None, "warning", reason)
