"""The reader of kubeflow.org/v1: its defaults and its rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.job import mpi
from mpiboot.job.model import Job
from mpiboot.job.read import replica_specs, v2beta1
from mpiboot.job.read.fields import MOST_SLOTS

if TYPE_CHECKING:
    from mpiboot.job.read.fields import Fields
    from mpiboot.job.read.metadata import Metadata


def read(metadata: Metadata, spec: Fields) -> Job:
    """The job that a spec describes.

    `sshAuthMountPath` and `mpiImplementation` are newer than v1. They are read because an image may need them.
    """
    spec.known(
        "dialect", "slotsPerWorker", "cleanPodPolicy", "mpiReplicaSpecs", "mainContainer", "runPolicy",
        "sshAuthMountPath", "mpiImplementation", elsewhere=v2beta1.ELSEWHERE,
    )  # fmt: skip
    replicas = spec.mapping("mpiReplicaSpecs")
    replicas.known("Launcher", "Worker")
    main = spec.text("mainContainer", "") or ""
    return Job(
        **metadata.job_fields,
        slots_per_worker=spec.integer("slotsPerWorker", minimum=1, largest=MOST_SLOTS) or 1,
        implementation=spec.choice("mpiImplementation", mpi.names(), mpi.DEFAULT.name),
        ssh_auth_mount_path=v2beta1.mount_path(spec),
        main_container=main,
        launcher=replica_specs.launcher(replicas, main),
        worker=replica_specs.worker(replicas, main),
        run_policy=replica_specs.run_policy(spec),
    )
