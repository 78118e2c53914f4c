"""How the status of jobs of older versions differs: scripts of their users compare its words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpiboot.kube.conditions import REASONS

if TYPE_CHECKING:
    from mpiboot.job.model import Job
    from mpiboot.kube.conditions import Conditions


def is_old(job: Job) -> bool:
    return job.dialect != "v2beta1"


def failure(job: Job, reason: str, message: str) -> tuple[str, str]:
    """Reason and message of the Failed condition, from those of v2beta1.

    Older versions have two reasons and omit the cause, which is in the event and in `status.reason`.
    """
    if not is_old(job):
        return reason, message
    if reason == REASONS["evicted"]:
        return reason, message.partition(";")[0]
    return REASONS["failed"], f"MPIJob {job.namespace}/{job.name} has failed"


def event_text(job: Job, message: str) -> str:
    """The event of a failure: the message of the condition, and the cause."""
    return f"MPIJob {job.namespace}/{job.name} has failed: {message}" if is_old(job) else message


def keeps_workers(job: Job) -> bool:
    """Whether the status counts workers after the end: in v1 and v1alpha2, if they stay."""
    return is_old(job) and job.run_policy.clean_pod_policy == "None"


def words(job: Job, conditions: Conditions, *, active: int, ready: int) -> dict[str, Any]:
    """The fields that only v1alpha1 has."""
    if job.dialect != "v1alpha1":
        return {}
    launcher = ""
    if conditions.finished:
        launcher = "Succeeded" if conditions.true("Succeeded") else "Failed"
    elif active:
        launcher = "Active"
    elif conditions.true("Restarting"):
        launcher = "Failed"
    return {**({"launcherStatus": launcher} if launcher else {}), "workerReplicas": ready}
