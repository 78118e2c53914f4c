
"""What only v1alpha2 has: names of distributions, a run policy beside the top level, workers' restart policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mpiboot.job.model import Job, Replica, RunPolicy
from mpiboot.job.read.read import ReadJob, read
from tests.job.versions.conftest import container, variables, worker_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.job.plan.plan import Plan
    from mpiboot.job.read.manifest import Manifest


def test_the_documented_manifest_of_v1alpha2_runs_with_its_mistakes(manifest: Callable[[str], Manifest]) -> None:
    given = manifest("v1alpha2.yaml")
    found = read(given)
    specs = given.data["spec"]["mpiReplicaSpecs"]
    assert found.job == Job(
        name="tensorflow-mnist",
        namespace="default",
        api_version="kubeflow.org/v1alpha2",
        dialect="v1alpha2",
        slots_per_worker=2,
        ssh_auth_mount_path="/root/.ssh",
        launcher=Replica(1, specs["Launcher"]["template"], "Never"),
        worker=Replica(1, specs["Worker"]["template"], "Never"),
        run_policy=RunPolicy("Running", backoff_limit=6),
    )
    path = "spec.mpiReplicaSpecs"
    assert [problem.text("f.yaml") for problem in found.warnings] == [
        (
            f"f.yaml:20: {path}.Launcher.template.spec.containers[0].resources.request: unknown field, kept; "
            "Kubernetes will ignore it; did you mean requests?"
        ),
        (
            f"f.yaml:25: {path}.Worker.restartPolicy: must be one of Never, OnFailure, ExitCode, Always; is 'None': "
            "Never is used"
        ),
    ]


@pytest.mark.parametrize(("distribution", "implementation"), [
    ("OpenMPI", "OpenMPI"), ("IntelMPI", "Intel"), ("MPICH", "MPICH"),
])  # fmt: skip
def test_distributions_have_newer_names(
    read_old: Callable[..., ReadJob], distribution: str, implementation: str
) -> None:
    assert read_old("v1alpha2", {"mpiDistribution": distribution}).job.implementation == implementation


def test_the_run_policy_beats_the_top_level(read_old: Callable[..., ReadJob]) -> None:
    above = {"backoffLimit": 1, "activeDeadlineSeconds": 10, "cleanPodPolicy": "All"}
    assert read_old("v1alpha2", above).job.run_policy == RunPolicy(
        "All", backoff_limit=1, active_deadline_seconds=10
    )
    policy = {"backoffLimit": 2, "activeDeadlineSeconds": 20, "cleanPodPolicy": "None"}
    assert read_old("v1alpha2", {**above, "runPolicy": policy}).job.run_policy == RunPolicy(
        "None", backoff_limit=2, active_deadline_seconds=20
    )
    assert read_old("v1alpha2", {**above, "runPolicy": {"backoffLimit": 0}}).job.run_policy == RunPolicy(
        "All", backoff_limit=0, active_deadline_seconds=10
    )


@pytest.mark.parametrize(("given", "taken"), [
    ("OnFailure", "OnFailure"), ("ExitCode", "Never"), ("Always", "Always"), ("None", "Never"), (3, "Never"),
    ("", "Never"),
])  # fmt: skip
def test_restart_policies_of_workers(read_old: Callable[..., ReadJob], given: object, taken: str) -> None:
    worker = worker_of(read_old("v1alpha2", {"Worker.restartPolicy": given}))
    assert worker.restart_policy == taken


@pytest.mark.parametrize(("command", "args", "idles"), [
    (["sleep"], ["365d"], True),
    (["/bin/sleep", "infinity"], None, True),
    (["sh", "-c", "exec sleep infinity"], None, True),
    (["bash", "-c"], ["tail -f /dev/null"], True),
    (["sh", "-c", "sleep 5; /usr/sbin/sshd -De"], None, False),
    (["/usr/sbin/sshd", "-De"], None, False),
])  # fmt: skip
def test_only_a_worker_that_does_nothing_loses_its_command(
    read_old: Callable[..., ReadJob], command: list[str], args: list[str] | None, idles: bool
) -> None:
    place = "Worker.template.spec.containers.0"
    found = read_old("v1alpha2", {f"{place}.command": command, **({f"{place}.args": args} if args else {})})
    assert ("command" in container(worker_of(found).template)) is not idles


def test_the_main_container_of_an_old_job_gets_what_the_job_needs(plan_old: Callable[..., Plan]) -> None:
    both = [{"name": "logs", "image": "me/logs"}, {"name": "mpi", "image": "me/app", "command": ["mpirun"]}]
    changes = {"mainContainer": "mpi", "Launcher.template.spec.containers": both,
               "Worker.template.spec.containers": [both[0], {"name": "mpi", "image": "me/app"}]}  # fmt: skip
    plan = plan_old("v1alpha2", changes)
    for pod in (plan.launcher["spec"]["template"], plan.workers[0]):
        logs, mpi = pod["spec"]["containers"]
        assert logs == both[0]
        assert "K_MPI_JOB_ROLE" in variables(mpi)
