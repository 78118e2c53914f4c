"""The CustomResourceDefinition of MPIJob, as data: `deploy/crd.yaml` is made from it.

All versions have one and the same schema, the union of their fields. An object is stored once and read through any of
them: kubectl prefers v1, so `kubectl edit` of a v2beta1 job goes through v1. A field that v1 lacks, or a default of its
own, would change the job. Only the default of `spec.dialect` differs: it marks a new object with the version that its
user wrote.
"""

from __future__ import annotations

from typing import Any

from mpiboot.controller.install.schema import Schema, anything, fields, flag, integer, mapping, quantity, text, time
from mpiboot.job import mpi
from mpiboot.job.read.fields import MOST_SLOTS, MOST_WORKERS_EVER

GROUP, PLURAL = "kubeflow.org", "mpijobs"
NAME = f"{PLURAL}.{GROUP}"
STORED = "v2beta1"
VERSIONS = (STORED, "v1", "v1alpha2", "v1alpha1")

COLUMNS = (
    ("State", "string", ".status.state", "What the job is doing"),
    ("Workers", "string", ".status.workers", "Workers that are ready, of those wanted"),
    ("Age", "date", ".metadata.creationTimestamp", "Time since it was created"),
    ("Reason", "string", ".status.reason", "Why it is not running, or has failed"),
)

# What v1alpha2's CRD refused. The other versions accept such a job, and the operator sends an event.
ALPHA_RULES = (
    ("self.slotsPerWorker >= 1", "slotsPerWorker", "spec.slotsPerWorker must be at least 1"),
    ("self.mpiReplicaSpecs.Launcher.replicas == 1", "mpiReplicaSpecs.Launcher.replicas", "Launcher.replicas must be 1"),
    (
        "self.mpiReplicaSpecs.Worker.replicas >= 1",
        "mpiReplicaSpecs.Worker.replicas",
        "Worker.replicas must be at least 1",
    ),
)


def crd() -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME, "labels": {"app.kubernetes.io/name": "mpiboot-operator"}},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": "MPIJob",
                "listKind": "MPIJobList",
                "plural": PLURAL,
                "singular": "mpijob",
                "shortNames": ["mj", "mpij"],
            },
            "versions": [version(name) for name in VERSIONS],
        },
    }


def version(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "served": True,
        "storage": name == STORED,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {"name": column, "type": kind, "jsonPath": path, "description": help_text}
            for column, kind, path, help_text in COLUMNS
        ],
        "schema": {"openAPIV3Schema": job(name)},
    }


def job(dialect: str) -> Schema:
    return fields(
        "A job of one launcher, which runs mpirun, and of workers that run its ranks.",
        apiVersion=text(),
        kind=text(),
        metadata={"type": "object"},
        spec=spec(dialect),
        status=status(),
    )


def rules() -> list[dict[str, str]]:
    """The rules as CEL: each holds only for v1alpha2's jobs, and only where its field is given.

    v1alpha1 knows no replica specs, so that the others must have them is a rule too.
    """
    needed = {
        "rule": f"({given('dialect')} && self.dialect == 'v1alpha1') || {given('mpiReplicaSpecs')}",
        "message": "spec.mpiReplicaSpecs must be given",
    }
    return [needed, *({"rule": f"!({given('dialect')}) || self.dialect != 'v1alpha2' || !({given(path)}) || {rule}",
                       "message": message} for rule, path, message in ALPHA_RULES)]  # fmt: skip


def given(path: str) -> str:
    """Whether a field below self is given, and all fields above it."""
    parts = path.split(".")
    return " && ".join(f"has(self.{'.'.join(parts[: count + 1])})" for count in range(len(parts)))


def spec(dialect: str) -> Schema:
    return {**spec_fields(dialect), "x-kubernetes-validations": rules()}


def spec_fields(dialect: str) -> Schema:
    first, *others = mpi.names()
    return fields(
        "What to run.",
        dialect=text(
            "API version whose rules hold for this job. The API server sets it on creation: do not change it.",
            default=dialect,
        ),
        # No default here: v1alpha1 takes as many as a worker has GPUs.
        slotsPerWorker=integer("Ranks that each worker takes; 1 if not given.", most=MOST_SLOTS),
        runLauncherAsWorker=flag("Let the launcher take ranks too."),
        sshAuthMountPath=text("Where the SSH keys are mounted; /root/.ssh if not given."),
        launcherCreationPolicy=text("AtStartup (if not given), or WaitForWorkersReady."),
        mpiImplementation=text(f"{listed((f'{first} (if not given)', *others))}.", choices=(first, *others)),
        mpiDistribution=text(f"v1alpha2's name of mpiImplementation: {listed(tuple(mpi.by_v1alpha2()))}."),
        mainContainer=text("v1 and v1alpha2: the container of a template that runs the job; the first if not given."),
        backoffLimit=integer("v1alpha2: how often a failed launcher is started again."),
        activeDeadlineSeconds=integer("v1alpha2: seconds that the job may take.", bits=64),
        cleanPodPolicy=text("v1 and v1alpha2: see runPolicy.cleanPodPolicy."),
        mpiReplicaSpecs={
            **fields(
                "The launcher and the workers.",
                Launcher=replica("The pod that runs mpirun. Its number of replicas is 1."),
                Worker=replica("The pods that run the ranks. Without a command they run an SSH server."),
            ),
            "x-kubernetes-preserve-unknown-fields": True,
        },
        runPolicy=run_policy(),
        gpus=integer("v1alpha1: GPUs of all workers together."),
        gpusPerNode=integer("v1alpha1: GPUs that a worker gets at most; 8 if not given."),
        processingUnits=integer("v1alpha1: processing units of all workers together."),
        processingUnitsPerNode=integer("v1alpha1: processing units that a worker gets at most."),
        processingResourceType=text("v1alpha1: what a unit is: nvidia.com/gpu (if not given) or cpu."),
        launcherOnMaster=flag("v1alpha1: run the launcher on a node of the control plane."),
        replicas=integer(
            "v1alpha1: the number of workers, whose units are in the template.", most=MOST_WORKERS_EVER
        ),
        template=anything("v1alpha1: the template of launcher and workers."),
    )


def listed(words: tuple[str, ...]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}"


def replica(help_text: str) -> Schema:
    return fields(
        help_text,
        replicas=integer("How many pods.", most=MOST_WORKERS_EVER),
        restartPolicy=text("Never, or OnFailure."),
        # Old manifests hold misspelt fields: a template keeps every field.
        template=anything("A pod's template: metadata and spec."),
    )


def run_policy() -> Schema:
    return fields(
        "How long the job may run, how often it is tried, and what stays afterwards.",
        cleanPodPolicy=text("Workers that are deleted when the job has finished: None (if not given), Running or All."),
        ttlSecondsAfterFinished=integer("Seconds after which a finished launcher Job is deleted."),
        activeDeadlineSeconds=integer("Seconds that the job may take, waiting included.", bits=64),
        backoffLimit=integer("How often a failed launcher is started again; 6 if not given."),
        suspend=flag("Suspend the job: its workers are deleted, its launcher waits."),
        managedBy=text("Who runs the job: kubeflow.org/mpi-operator (if not given) or kueue.x-k8s.io/multikueue."),
        schedulingPolicy=fields(
            "Settings for a gang scheduler.",
            minAvailable=integer("Pods that must be placed together."),
            queue=text("Queue that the pods belong to."),
            minResources=mapping(quantity(), "Resources that must be free for all of them."),
            priorityClass=text("Priority class of the group."),
            scheduleTimeoutSeconds=integer("Seconds after which the scheduler gives up."),
        ),
    )


def status() -> Schema:
    return fields(
        "State of the job. Only the operator writes it.",
        state=text("One word: Invalid, Pending, Waiting, Starting, Running, Restarting, Suspended, Succeeded, Failed."),
        workers=text("Workers that are ready, of those wanted: 3/4."),
        launcherWaits=text("How the launcher waits for the workers: in-place, guard, gate, or off."),
        reason=text("Why the job does not run or has failed."),
        conditions={
            "type": "array",
            "description": "Created, Running, Restarting, Suspended, Succeeded, Failed.",
            "items": condition(),
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
        restarts=fields(
            "Restarts in place: attempts that failed and were followed by another one in the same launcher.",
            count=integer("How many."),
            cause=text("How the last of them ended."),
            time=time("When it ended."),
        ),
        replicaStatuses=mapping(replica_status(), "How many pods of each role are in which phase."),
        startTime=time("When the job started or was last resumed."),
        completionTime=time("When it ended."),
        launcherJob=text("uid of the launcher's Job while its program may run."),
        lastReconcileTime=time("When the operator last wrote this."),
        launcherStatus=text("v1alpha1: Active, Succeeded or Failed."),
        workerReplicas=integer("v1alpha1: workers that are ready."),
    )


def condition() -> Schema:
    return fields(
        "",
        required=("type", "status"),
        type=text(),
        status=text(choices=("True", "False", "Unknown")),
        reason=text(),
        message=text(),
        lastUpdateTime=time(),
        lastTransitionTime=time(),
    )


def replica_status() -> Schema:
    return fields(
        "",
        active=integer("Pods that run."),
        succeeded=integer("Pods that ended well."),
        failed=integer("Pods that failed."),
        labelSelector=anything("Not used any more."),
        selector=text("Not used any more."),
    )
