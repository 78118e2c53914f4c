"""What stays of a job, how long it may run, and how it grows and shrinks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.controller.conftest import eventually, holds

if TYPE_CHECKING:
    from tests.controller.conftest import World


@pytest.mark.parametrize(
    ("policy", "left"), [("None", [0, 1, 2]), ("Running", [2]), ("All", [])], ids=["None", "Running", "All"]
)
def test_the_clean_pod_policy_decides_which_workers_stay(world: World, policy: str, left: list[int]) -> None:
    world.submit(workers=3, policy={"cleanPodPolicy": policy})
    world.started(3)
    first, _, third = world.workers()
    world.phase(first, "Running")
    world.phase(third, "Failed")
    world.launcher_ends("Complete")

    def numbers() -> list[int]:
        return [int(pod["metadata"]["name"][-1]) for pod in world.workers()]

    eventually(f"workers {left}", lambda: numbers() == left)
    eventually("the outcome", lambda: world.condition("Succeeded"))
    holds(lambda: numbers() == left, 1)
    world.replicas({"Launcher": {"succeeded": 1}, "Worker": {}})


def test_the_launcher_gets_its_ttl_only_after_the_outcome_is_in_the_status(world: World) -> None:
    world.submit(policy={"ttlSecondsAfterFinished": 60})
    job = world.started()
    assert "ttlSecondsAfterFinished" not in job["spec"]
    world.launcher_ends("Complete")

    def ttl() -> Any:  # noqa: ANN401
        launcher = world.launcher()
        assert launcher
        return launcher["spec"].get("ttlSecondsAfterFinished")

    eventually("a TTL", lambda: ttl() == 60)
    assert world.condition("Succeeded")


def test_limits_reach_the_launchers_job(world: World) -> None:
    world.submit(policy={"activeDeadlineSeconds": 600, "backoffLimit": 2})
    spec = world.started()["spec"]
    assert (spec["activeDeadlineSeconds"], spec["backoffLimit"]) == (600, 2)
    assert spec["podReplacementPolicy"] == "Failed"


def test_the_deadline_counts_before_there_is_a_launcher(world: World) -> None:
    world.submit(launcherCreationPolicy="WaitForWorkersReady", policy={"activeDeadlineSeconds": 2})
    failed = eventually("the end", lambda: world.condition("Failed"))
    assert failed["reason"] == "DeadlineExceeded"
    eventually("no workers", lambda: not world.workers())
    assert world.launcher() is None


def test_a_late_launcher_has_the_rest_of_the_deadline(world: World) -> None:
    world.submit(launcherCreationPolicy="WaitForWorkersReady", policy={"activeDeadlineSeconds": 4})
    eventually("workers", lambda: len(world.workers()) == 2)
    world.run_workers(ready=True)
    assert world.started()["spec"]["activeDeadlineSeconds"] == 4
    # The job started long ago: its launcher has waited since.
    world.patch("MPIJob", "job", {"status": {"startTime": "2026-01-01T00:00:00Z"}}, "status")
    world.patch("Job", "job-launcher", {"status": {"startTime": "2026-01-01T00:10:00Z"}}, "status")
    failed = eventually("the end", lambda: world.condition("Failed"))
    assert failed["reason"] == "DeadlineExceeded"
    eventually("a launcher that is held", lambda: (found := world.launcher()) and found["spec"].get("suspend"))
    eventually("no workers", lambda: not world.workers())
    # The cluster counts from the end of a Job, and a suspended Job has none.
    world.patch("MPIJob", "job", {"spec": {"runPolicy": {"ttlSecondsAfterFinished": 1}}})
    eventually("no launcher", lambda: world.launcher() is None)
    holds(lambda: world.launcher() is None, 1)


def test_workers_are_added_and_the_highest_are_removed(world: World) -> None:
    world.submit()
    world.started()
    before = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in world.workers()}

    def scale(count: int) -> dict[str, str]:
        world.patch("MPIJob", "job", {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": count}}}})
        pods = eventually(f"{count} workers", lambda: len(world.workers()) == count and world.workers())
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}

    assert before.items() < scale(4).items()

    def hosts() -> int:
        config = world.get("ConfigMap", "job-config")
        assert config
        return len(config["data"]["hostfile"].splitlines())

    eventually("four hosts", lambda: hosts() == 4)
    assert scale(1) == {"job-worker-0": before["job-worker-0"]}
    eventually("one host", lambda: hosts() == 1)
    assert world.events("ChangeIgnored") == []


def test_evicted_workers_are_an_event_and_the_reason_of_a_failure(world: World) -> None:
    world.submit()
    world.started()
    world.phase(world.workers()[0], "Failed", reason="Evicted", message="The node was low on memory.")
    assert world.said("MPIJobEvicted")["message"] == "1/2 workers are evicted"
    world.replicas({"Launcher": {}, "Worker": {"failed": 1}})
    assert world.condition("Failed") == {}
    world.launcher_ends("Failed", failed=7, reason="BackoffLimitExceeded")
    assert eventually("the end", lambda: world.condition("Failed"))["reason"] == "MPIJobEvicted"


def test_an_ignored_edit_is_an_event(world: World) -> None:
    world.submit()
    world.started()
    world.patch("MPIJob", "job", {"spec": {"slotsPerWorker": 4, "mpiImplementation": "MPICH"}})
    assert "spec.slotsPerWorker, spec.mpiImplementation" in world.said("ChangeIgnored")["message"]
    # More workers are added, with the slots that the launcher was made for.
    world.patch("MPIJob", "job", {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 3}}}})
    lines = [f"job-worker-{index}.job.{world.namespace}.svc slots=1" for index in range(3)]

    def hosts() -> list[str]:
        config = world.get("ConfigMap", "job-config")
        assert config
        found: str = config["data"]["hostfile"]
        return found.splitlines()

    eventually("three hosts", lambda: hosts() == lines)
