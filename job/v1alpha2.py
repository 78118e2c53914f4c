"""The reader of kubeflow.org/v1alpha2: its defaults and its rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mpiboot.job import replica_specs, v2beta1
from mpiboot.job.model import Job

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.job.fields import Fields
    from mpiboot.job.head import Head
    from mpiboot.job.model import Implementation, RunPolicy

BACKOFF_LIMIT = 6
DISTRIBUTIONS: Mapping[str, Implementation] = {"OpenMPI": "OpenMPI", "IntelMPI": "Intel", "MPICH": "MPICH"}
ELSEWHERE = {"mpiImplementation": "spec.mpiDistribution"}


def read(head: Head, spec: Fields) -> Job:
    """The job that a spec describes. `sshAuthMountPath` is newer than v1alpha2, see the reader of v1."""
    spec.known(
        "dialect", "slotsPerWorker", "backoffLimit", "activeDeadlineSeconds", "cleanPodPolicy", "mpiReplicaSpecs",
        "mainContainer", "runPolicy", "mpiDistribution", "sshAuthMountPath", elsewhere=ELSEWHERE,
    )  # fmt: skip
    replicas = spec.mapping("mpiReplicaSpecs")
    replicas.known("Launcher", "Worker")
    main = spec.text("mainContainer", "") or ""
    return Job(
        **head.of_job,
        slots_per_worker=spec.integer("slotsPerWorker", minimum=1) or 1,
        implementation=DISTRIBUTIONS[spec.choice("mpiDistribution", tuple(DISTRIBUTIONS), "OpenMPI")],
        ssh_auth_mount_path=v2beta1.mount_path(spec),
        main_container=main,
        launcher=replica_specs.launcher(replicas, main),
        worker=replica_specs.worker(replicas, main),
        run_policy=run_policy(spec),
    )


def run_policy(spec: Fields) -> RunPolicy:
    """`runPolicy`, and below it the limits that stood at the top level before there was one."""
    backoff = spec.integer("backoffLimit", minimum=0)
    deadline = spec.integer("activeDeadlineSeconds", minimum=0, largest=v2beta1.LARGEST_INT64)
    policy = replica_specs.run_policy(spec, backoff_limit=BACKOFF_LIMIT if backoff is None else backoff)
    if policy.active_deadline_seconds is None:
        policy = replace(policy, active_deadline_seconds=deadline)
    return policy
