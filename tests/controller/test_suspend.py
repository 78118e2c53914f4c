"""Suspended jobs have no pods, and resume with the fields that they have then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.controller.conftest import eventually, holds

if TYPE_CHECKING:
    from tests.controller.conftest import World


def suspend(world: World, *, on: bool) -> None:
    world.patch("MPIJob", "job", {"spec": {"runPolicy": {"suspend": on}}})


def is_suspended(world: World) -> bool:
    job = world.launcher()
    return bool(job and job["spec"].get("suspend"))


def test_a_job_created_suspended_starts_when_it_is_resumed(world: World) -> None:
    world.submit(policy={"suspend": True})
    world.replicas({"Launcher": {}, "Worker": {}})
    rests = world.launcher()
    assert rests
    assert is_suspended(world)
    assert not world.workers()
    assert world.condition("Suspended")["status"] == "True"
    assert world.condition("Running")["status"] == "False"
    assert "startTime" not in world.status()
    world.said("MPIJobSuspended")
    # The operator writes nothing between the read and the update of a suspended job.
    job = world.job()
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"] |= {
        "metadata": {"labels": {"foo": "bar"}, "annotations": {"queue.example.com/workload": "mine"}}
    }
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"] |= {
        "nodeSelector": {"example.com/accelerator": "model"},
        "tolerations": [{"key": "gpu", "operator": "Equal", "value": "true", "effect": "NoSchedule"}],
        "schedulingGates": [{"name": "queue.example.com/topology"}],
    }
    job = world.replace("MPIJob", job)
    job["spec"]["runPolicy"]["suspend"] = False
    world.replace("MPIJob", job)
    eventually("workers", lambda: len(world.workers()) == 2)
    eventually("a launcher that goes on", lambda: not is_suspended(world))
    world.said("MPIJobResumed")
    assert world.status()["startTime"]
    assert world.condition("Suspended")["status"] == "False"
    launcher = world.launcher()
    assert launcher
    template = launcher["spec"]["template"]
    assert template["metadata"]["labels"]["foo"] == "bar"
    assert template["metadata"]["annotations"]["queue.example.com/workload"] == "mine"
    assert template["spec"]["nodeSelector"] == {"example.com/accelerator": "model"}
    assert template["spec"]["tolerations"][-1]["key"] == "gpu"
    assert launcher["metadata"]["uid"] == rests["metadata"]["uid"]
    # Queueing systems look for their gate at the end.
    assert template["spec"]["schedulingGates"][-1] == {"name": "queue.example.com/topology"}


def test_a_running_job_can_be_suspended_and_resumed(world: World) -> None:
    world.submit()
    world.started()
    world.run_workers()
    pod = world.launcher_pod()
    world.phase(pod, "Running")
    eventually("running", lambda: world.condition("Running"))
    # As its controller does when it starts a Job: the template counts as fixed from then on.
    world.patch("Job", "job-launcher", {"status": {"startTime": "2026-01-01T00:00:00Z"}}, "status")
    began = world.status()["startTime"]

    suspend(world, on=True)
    world.delete("Pod", pod["metadata"]["name"])
    eventually("no workers", lambda: not world.workers())
    world.replicas({"Launcher": {}, "Worker": {}})
    assert is_suspended(world)
    assert world.condition("Running")["status"] == "False"
    holds(lambda: not world.workers(), 1)

    selector = {"template": {"spec": {"nodeSelector": {"disk": "fast"}}}}
    world.patch("MPIJob", "job", {"spec": {"mpiReplicaSpecs": {"Launcher": selector}}})
    suspend(world, on=False)
    eventually("workers", lambda: len(world.workers()) == 2)
    eventually("a launcher that goes on", lambda: not is_suspended(world))
    launcher = world.launcher()
    assert launcher
    assert launcher["spec"]["template"]["spec"]["nodeSelector"] == {"disk": "fast"}
    assert world.status()["startTime"] >= began
    suspend(world, on=True)
    eventually("a second telling", lambda: world.said("MPIJobSuspended")["count"] == 2)


@pytest.mark.parametrize("ran", [False, True], ids=["never ran", "ran"])
def test_a_launcher_edited_while_suspended_runs_as_edited(world: World, *, ran: bool) -> None:
    world.submit(policy={} if ran else {"suspend": True})
    before = eventually("the launcher's Job", world.launcher)
    if ran:
        world.started()
        world.patch("Job", "job-launcher", {"status": {"startTime": "2026-01-01T00:00:00Z"}}, "status")
        suspend(world, on=True)
    eventually("a launcher that rests", lambda: is_suspended(world))
    edited = {"containers": [{"name": "main", "image": "another", "command": ["mpirun", "new"]}]}
    world.patch("MPIJob", "job", {"spec": {"mpiReplicaSpecs": {"Launcher": {"template": {"spec": edited}}}}})
    suspend(world, on=False)
    old = before["metadata"]["uid"]
    eventually("another launcher's Job", lambda: (now := world.launcher()) and now["metadata"]["uid"] != old)
    launcher = world.started()
    container = launcher["spec"]["template"]["spec"]["containers"][0]
    assert (container["image"], container["command"][-2:]) == ("another", ["mpirun", "new"])
    assert not launcher["spec"].get("suspend")
    assert world.events("ChangeIgnored") == []


def test_an_update_right_after_creation_is_not_refused(world: World) -> None:
    job = world.submit(policy={"suspend": True})
    holds(lambda: world.job()["metadata"]["resourceVersion"] == job["metadata"]["resourceVersion"], 0.5)
    job["spec"]["runPolicy"]["suspend"] = False
    world.replace("MPIJob", job)
    world.started()


def test_jobs_of_another_manager_are_not_changed(world: World) -> None:
    world.submit(name="theirs", policy={"managedBy": "kueue.x-k8s.io/multikueue"})
    world.submit(name="ours", policy={"managedBy": "kubeflow.org/mpi-operator"})
    world.started(name="ours")
    holds(lambda: world.status("theirs") == {} and world.launcher("theirs") is None, 1)
    assert not world.workers("theirs")
    assert world.get("Secret", "theirs-ssh") is None
