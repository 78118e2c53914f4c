"""The labels of a job's pods. They carry every family, so that whatever selector a user has in a script finds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpiboot.job.model import Job, Role

OPERATOR_NAME = "training.kubeflow.org/operator-name"
JOB_NAME = "training.kubeflow.org/job-name"
JOB_ROLE = "training.kubeflow.org/job-role"
REPLICA_INDEX = "training.kubeflow.org/replica-index"
OPERATOR = "mpi-operator"
GROUP = "kubeflow.org"


def of_object(job: Job) -> dict[str, str]:
    """Labels of the objects that are no pods: `app` for people, the other two for watches that want only ours."""
    return {"app": job.name, **selector(job)}


def selector(job: Job) -> dict[str, str]:
    """What the job's Service selects: all its pods, of both roles."""
    return {OPERATOR_NAME: OPERATOR, JOB_NAME: job.name}


def of_pod(job: Job, role: Role, index: int | None = None) -> dict[str, str]:
    """Labels of a pod. `index` is the one in a worker's name; the launcher has none."""
    families = {
        # v2beta1
        OPERATOR_NAME: OPERATOR,
        JOB_NAME: job.name,
        JOB_ROLE: role,
        # v1
        "group-name": GROUP,
        "mpi-job-name": job.name,
        "mpi-job-role": role,
        # v1alpha2
        "group_name": GROUP,
        "mpi_job_name": job.name,
        "mpi_role_type": role,
    }
    rank = replica_index(job, role, index)
    return families if rank is None else {**families, REPLICA_INDEX: rank, "replica-index": rank}


def replica_index(job: Job, role: Role, index: int | None) -> str | None:
    """The index label: schedulers that place by it want it unique, so a launcher that works is 0 and workers follow."""
    if role == "launcher":
        return "0" if job.run_launcher_as_worker else None
    assert index is not None
    return str(index + job.run_launcher_as_worker)
