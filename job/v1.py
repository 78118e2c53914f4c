"""The reader of kubeflow.org/v1: its defaults and its rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.job import replica_specs, v2beta1
from mpiboot.job.model import Job

if TYPE_CHECKING:
    from mpiboot.job.fields import Fields
    from mpiboot.job.head import Head


def read(head: Head, spec: Fields) -> Job:
    """The job that a spec describes.

    `sshAuthMountPath` and `mpiImplementation` are newer than v1. They are heard because an image may need them.
    """
    spec.known(
        "dialect", "slotsPerWorker", "cleanPodPolicy", "mpiReplicaSpecs", "mainContainer", "runPolicy",
        "sshAuthMountPath", "mpiImplementation", elsewhere=v2beta1.ELSEWHERE,
    )  # fmt: skip
    replicas = spec.mapping("mpiReplicaSpecs")
    replicas.known("Launcher", "Worker")
    main = spec.text("mainContainer", "") or ""
    return Job(
        **head.of_job,
        slots_per_worker=spec.integer("slotsPerWorker", minimum=1) or 1,
        implementation=spec.choice("mpiImplementation", v2beta1.IMPLEMENTATIONS, "OpenMPI"),
        ssh_auth_mount_path=v2beta1.mount_path(spec),
        main_container=main,
        launcher=replica_specs.launcher(replicas, main),
        worker=replica_specs.worker(replicas, main),
        run_policy=replica_specs.run_policy(spec),
    )
