"""The reader of kubeflow.org/v2beta1: its defaults and its rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.job import mpi
from mpiboot.job.gang import SchedulingPolicy
from mpiboot.job.model import ROOTS_SSH, Job, Replica, RunPolicy
from mpiboot.job.read import podtemplate
from mpiboot.job.read.fields import MOST_SLOTS

if TYPE_CHECKING:
    from mpiboot.job.read.fields import Fields
    from mpiboot.job.read.metadata import Metadata

RESTART_POLICIES = ("Never", "OnFailure")
MANAGERS = ("kubeflow.org/mpi-operator", "kueue.x-k8s.io/multikueue")
LARGEST_INT64 = 2**63 - 1

# Fields of older versions, by the names they have now.
ELSEWHERE = {
    "cleanPodPolicy": "spec.runPolicy.cleanPodPolicy",
    "activeDeadlineSeconds": "spec.runPolicy.activeDeadlineSeconds",
    "backoffLimit": "spec.runPolicy.backoffLimit",
    "mpiDistribution": "spec.mpiImplementation",
    "replicas": "spec.mpiReplicaSpecs.Worker.replicas",
    "template": "spec.mpiReplicaSpecs.Worker.template",
}


def read(metadata: Metadata, spec: Fields) -> Job:
    """The job that a spec describes. With an error among the problems it is only good for finding more of them."""
    spec.known(
        "dialect", "slotsPerWorker", "runLauncherAsWorker", "runPolicy", "mpiReplicaSpecs", "sshAuthMountPath",
        "launcherCreationPolicy", "mpiImplementation", elsewhere=ELSEWHERE,
    )  # fmt: skip
    replicas = spec.mapping("mpiReplicaSpecs")
    replicas.known("Launcher", "Worker")
    slots = spec.integer("slotsPerWorker", minimum=0, largest=MOST_SLOTS)
    return Job(
        **metadata.job_fields,
        slots_per_worker=1 if slots is None else slots,
        implementation=spec.choice("mpiImplementation", mpi.names(), mpi.DEFAULT.name),
        ssh_auth_mount_path=mount_path(spec),
        launcher_creation_policy=spec.choice(
            "launcherCreationPolicy", ("AtStartup", "WaitForWorkersReady"), "AtStartup"
        ),
        run_launcher_as_worker=spec.boolean("runLauncherAsWorker", default=False),
        launcher=launcher(replicas),
        worker=worker(replicas),
        run_policy=run_policy(spec.mapping("runPolicy")),
    )


def mount_path(spec: Fields) -> str:
    path = spec.text("sshAuthMountPath", ROOTS_SSH) or ROOTS_SSH
    if ":" in path:
        spec.note("sshAuthMountPath", f"must not contain ':', is {path!r}")
    return path if path.startswith("/") else f"/{path}"  # what a kubelet makes of it


def launcher(replicas: Fields) -> Replica:
    fields = launcher_fields(replicas)
    return Replica(1, {}, "OnFailure") if fields is None else replica(fields, 1, "OnFailure")


def launcher_fields(replicas: Fields) -> Fields | None:
    """A cursor on the launcher's spec; None, with a problem noted, if there is none."""
    if replicas.get("Launcher") is None:
        replicas.note("Launcher", "must be given: it is the pod that runs mpirun")
        return None
    fields = replicas.mapping("Launcher")
    count = fields.integer("replicas")
    if count not in (None, 1):
        fields.note("replicas", f"must be 1, is {count}")
    return fields


def worker(replicas: Fields) -> Replica | None:
    if replicas.get("Worker") is None:
        return None
    fields = replicas.mapping("Worker")
    if fields.get("replicas") is None:
        fields.note("replicas", "must be given: how many workers, >= 1")
    return replica(fields, fields.integer("replicas", minimum=1) or 1, "Never")


def replica(fields: Fields, count: int, restart_policy: str) -> Replica:
    fields.known("replicas", "template", "restartPolicy")
    template = fields.mapping("template")
    podtemplate.check(template)
    return Replica(count, template.value, fields.choice("restartPolicy", RESTART_POLICIES, restart_policy))


def run_policy(fields: Fields) -> RunPolicy:
    fields.known(
        "cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit", "suspend", "managedBy",
        "schedulingPolicy",
    )  # fmt: skip
    fields.choice("managedBy", MANAGERS, "")  # a job of another manager is left alone before it is read
    return RunPolicy(
        clean_pod_policy=fields.choice("cleanPodPolicy", ("None", "Running", "All"), "None"),
        ttl_seconds_after_finished=fields.integer("ttlSecondsAfterFinished", minimum=0),
        active_deadline_seconds=fields.integer("activeDeadlineSeconds", minimum=0, largest=LARGEST_INT64),
        backoff_limit=fields.integer("backoffLimit", minimum=0),
        suspend=fields.boolean("suspend", default=False),
        scheduling_policy=scheduling_policy(fields.mapping("schedulingPolicy")),
    )


def scheduling_policy(policy: Fields) -> SchedulingPolicy:
    """What the job asks of a gang scheduler."""
    policy.known("minAvailable", "queue", "minResources", "priorityClass", "scheduleTimeoutSeconds")
    return SchedulingPolicy(
        min_resources=policy.mapping("minResources").value,
        min_available=policy.integer("minAvailable"),
        queue=policy.text("queue") or "",
        priority_class=policy.text("priorityClass") or "",
        schedule_timeout_seconds=policy.integer("scheduleTimeoutSeconds"),
    )
