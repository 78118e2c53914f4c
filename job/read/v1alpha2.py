"""The reader of kubeflow.org/v1alpha2: its defaults and its rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mpiboot.job import mpi
from mpiboot.job.model import Job
from mpiboot.job.read import replica_specs, v2beta1
from mpiboot.job.read.fields import MOST_SLOTS

if TYPE_CHECKING:
    from mpiboot.job.model import RunPolicy
    from mpiboot.job.read.fields import Fields
    from mpiboot.job.read.metadata import Metadata

BACKOFF_LIMIT = 6
ELSEWHERE = {"mpiImplementation": "spec.mpiDistribution"}


def read(metadata: Metadata, spec: Fields) -> Job:
    """The job that a spec describes. `sshAuthMountPath` is newer than v1alpha2, see the reader of v1."""
    spec.known(
        "dialect", "slotsPerWorker", "backoffLimit", "activeDeadlineSeconds", "cleanPodPolicy", "mpiReplicaSpecs",
        "mainContainer", "runPolicy", "mpiDistribution", "sshAuthMountPath", elsewhere=ELSEWHERE,
    )  # fmt: skip
    replicas = spec.mapping("mpiReplicaSpecs")
    replicas.known("Launcher", "Worker")
    main = spec.text("mainContainer", "") or ""
    distributions = mpi.by_v1alpha2()
    distribution = spec.choice("mpiDistribution", tuple(distributions), mpi.DEFAULT.distribution)
    return Job(
        **metadata.job_fields,
        slots_per_worker=spec.integer("slotsPerWorker", minimum=1, largest=MOST_SLOTS) or 1,
        implementation=distributions[distribution].name,
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
