"""What the plan warns of: pods that Kubernetes takes and that will not work as their user thinks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.job.check.advice import advice

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.job.plan.plan import Plan

TEMPLATE = "Launcher.template"
MAIN = f"{TEMPLATE}.spec.containers.0"
GROUP_READABLE = "makes the SSH key readable by a group, and root's ssh refuses such a key; leave it out"
ADVICE: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing to say": ({}, []),
    "a variable of ours": (
        {f"{MAIN}.env": [{"name": "K_MPI_JOB_ROLE", "value": "chief"}]},
        ["containers[0].env: K_MPI_JOB_ROLE is set by mpiboot; the value given here is not used"],
    ),
    "a variable of ours with the same value": ({f"{MAIN}.env": [{"name": "K_MPI_JOB_ROLE", "value": "launcher"}]}, []),
    "a variable of the user's own choice": (
        {f"{MAIN}.env": [{"name": "PRTE_MCA_hwloc_default_binding_policy", "value": "core"}]},
        [],
    ),
    "a mount over ours": (
        {f"{MAIN}.volumeMounts": [{"name": "mine", "mountPath": "/root/.ssh/"}]},
        ["containers[0].volumeMounts: /root/.ssh is mounted here, so the job's volume ssh-auth is not"],
    ),
    "no image": ({f"{MAIN}.image": ...}, ["containers[0].image: must be given: Kubernetes refuses the pod"]),
    "a group for root's key": (
        {f"{TEMPLATE}.spec.securityContext": {"fsGroup": 1000}},
        [f"securityContext.fsGroup: {GROUP_READABLE}"],
    ),
    "a group for a user's key": (
        {
            f"{TEMPLATE}.spec.securityContext": {"fsGroup": 1000, "runAsUser": 1000},
            "spec.sshAuthMountPath": "/home/me/.ssh",
        },
        [],
    ),
}


@pytest.mark.parametrize(("changes", "texts"), ADVICE.values(), ids=ADVICE)
def test_advice(plan_small: Callable[..., Plan], changes: dict[str, Any], texts: list[str]) -> None:
    found = [warning.text() for warning in advice(plan_small(changes).arrangement)]
    assert found == [f"spec.mpiReplicaSpecs.Launcher.template.spec.{text}" for text in texts]


def test_a_job_without_slots_gets_a_warning(plan_small: Callable[..., Plan]) -> None:
    for changes in ({"spec.slotsPerWorker": 0}, {"spec.mpiReplicaSpecs.Worker": ...}):
        texts = [warning.text() for warning in advice(plan_small(changes).arrangement)]
        assert texts == ["spec: no host has a slot: mpirun can start no rank"]


def test_a_group_matters_where_an_sshd_of_the_users_reads_the_key(plan_small: Callable[..., Plan]) -> None:
    changes = {
        "Worker.template.spec.containers.0.image": "mpiboot/openmpi:1",
        "Worker.template.spec.securityContext": {"fsGroup": 1000, "runAsUser": 0},
    }
    assert not any("fsGroup" in warning.path for warning in advice(plan_small(changes).arrangement))
    own_sshd = changes | {"Worker.template.spec.containers.0.command": ["/usr/sbin/sshd", "-De"]}
    texts = [warning.text() for warning in advice(plan_small(own_sshd).arrangement)]
    assert f"spec.mpiReplicaSpecs.Worker.template.spec.securityContext.fsGroup: {GROUP_READABLE}" in texts
