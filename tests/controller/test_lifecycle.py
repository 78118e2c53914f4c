"""A v2beta1 job from its creation to its end."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from tests.controller.conftest import eventually, holds

if TYPE_CHECKING:
    from tests.controller.conftest import World


def test_a_job_runs_from_creation_to_success(world: World) -> None:
    world.submit()
    world.started()
    world.replicas({"Launcher": {}, "Worker": {}})
    assert world.condition("Created")["reason"] == "MPIJobCreated"
    assert world.status()["startTime"]

    world.run_workers()
    world.replicas({"Launcher": {}, "Worker": {"active": 2}})
    assert world.condition("Running") == {}

    world.phase(world.launcher_pod(), "Running")
    world.replicas({"Launcher": {"active": 1}, "Worker": {"active": 2}})
    assert world.condition("Running")["status"] == "True"

    world.launcher_ends("Complete")
    eventually("no workers", lambda: not world.workers())
    world.replicas({"Launcher": {"succeeded": 1}, "Worker": {}})
    assert world.condition("Succeeded")["message"] == f"MPIJob {world.namespace}/job successfully completed."
    running = world.condition("Running")
    assert (running["status"], running["reason"]) == ("False", "MPIJobRunning")
    assert world.status()["completionTime"]
    assert [world.said(reason)["type"] for reason in ("MPIJobCreated", "MPIJobRunning", "MPIJobSucceeded")] == (
        ["Normal"] * 3
    )


def test_a_launcher_that_succeeded_is_enough_before_its_job_is_complete(world: World) -> None:
    """The Job controller writes that a second or two later. Nothing may stop the Job from getting there."""
    world.submit(policy={"ttlSecondsAfterFinished": 60})
    world.started()
    world.run_workers()
    world.phase(world.launcher_pod(), "Succeeded")
    eventually("success", lambda: world.condition("Succeeded"))
    world.replicas({"Launcher": {"succeeded": 1}, "Worker": {}})
    eventually("no workers", lambda: not world.workers())
    holds(lambda: (job := world.launcher()) is not None and not job["spec"].get("suspend"), 1)
    world.launcher_ends("Complete")
    holds(lambda: len(world.events("MPIJobSucceeded")) == 1, 1)


def test_events_have_the_reasons_and_messages_of_mpi_operator(world: World) -> None:
    made = world.submit()
    event = world.said("MPIJobCreated")
    assert event["source"] == {"component": "mpi-job-controller"}
    assert event["reportingComponent"] == "mpi-job-controller"
    assert event.get("eventTime") is None
    assert "action" not in event
    reference = event["involvedObject"]
    reference.pop("resourceVersion")
    assert reference == {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "name": "job",
        "namespace": world.namespace,
        "uid": made["metadata"]["uid"],
    }


def test_every_object_is_owned_by_its_job(world: World) -> None:
    made = world.submit()
    world.started()
    objects = [world.get(*which) for which in (
        ("Service", "job"), ("ConfigMap", "job-config"), ("Secret", "job-ssh"), ("Pod", "job-worker-0"),
        ("Pod", "job-worker-1"), ("Job", "job-launcher"))]  # fmt: skip
    for found in objects:
        assert found
        owner = found["metadata"]["ownerReferences"][0]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("MPIJob", made["metadata"]["uid"], True)


def test_each_job_has_keys_of_its_own(world: World) -> None:
    for name in ("one", "two"):
        world.submit(name=name)
        world.started(name=name)
    first, second = (world.get("Secret", f"{name}-ssh") for name in ("one", "two"))
    assert first
    assert second
    assert first["type"] == "kubernetes.io/ssh-auth"
    assert not set(first["data"].values()) & set(second["data"].values())
    assert b"OPENSSH PRIVATE KEY" in base64.b64decode(first["data"]["ssh-privatekey"])


def test_a_failed_launcher_pod_is_not_a_failed_job(world: World) -> None:
    world.submit()
    world.started()
    world.run_workers()
    pod = world.launcher_pod()
    world.phase(pod, "Running")
    world.replicas({"Launcher": {"active": 1}, "Worker": {"active": 2}})
    world.phase(pod, "Failed")
    world.patch("Job", "job-launcher", {"status": {"failed": 1}}, "status")
    world.replicas({"Launcher": {"failed": 1}, "Worker": {"active": 2}})
    assert world.condition("Failed") == {}

    world.launcher_ends("Failed", failed=2)
    eventually("no workers", lambda: not world.workers())
    world.replicas({"Launcher": {"failed": 2}, "Worker": {}})
    assert world.condition("Failed")["reason"] == "MPIJobFailed"
    assert world.said("MPIJobFailed")["type"] == "Warning"
    assert world.status()["completionTime"]


def test_the_reason_of_a_failure_names_the_pods_own(world: World) -> None:
    world.submit()
    world.started()
    pod = world.launcher_pod()
    state = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    status = {"name": "main", "image": "x", "imageID": "x", "ready": False, "restartCount": 0, "state": state}
    world.phase(pod, "Failed", containerStatuses=[status])
    world.launcher_ends("Failed", failed=1, reason="BackoffLimitExceeded", message="Job has reached its limit")
    failed = eventually("the condition", lambda: world.condition("Failed"))
    assert failed["reason"] == "BackoffLimitExceeded/OOMKilled"
    assert failed["message"] == "Job has reached its limit: OOMKilled, exit code 137"


def test_the_reason_is_known_after_its_pod_is_gone(world: World) -> None:
    """Under restartPolicy OnFailure Kubernetes deletes the pod, which runs again by then, at its backoffLimit."""
    world.submit()
    world.started()
    pod = world.launcher_pod()
    failed = {"terminated": {"exitCode": 7, "reason": "Error"}}
    status = {"name": "main", "image": "x", "imageID": "x", "ready": True, "restartCount": 1}
    world.phase(pod, "Running", containerStatuses=[
        {**status, "state": {"running": {}}, "lastState": failed}])
    world.replicas({"Launcher": {"active": 1}, "Worker": {}})
    world.delete("Pod", pod["metadata"]["name"])
    world.replicas({"Launcher": {}, "Worker": {}})
    world.launcher_ends("Failed", failed=1, reason="BackoffLimitExceeded", message="Job has reached its limit")
    condition = eventually("the condition", lambda: world.condition("Failed"))
    assert condition["reason"] == "BackoffLimitExceeded/Error"
    assert condition["message"] == "Job has reached its limit: exit code 7"


def test_a_finished_job_is_not_started_again(world: World) -> None:
    world.submit()
    world.started()
    world.launcher_ends("Complete")
    eventually("no workers", lambda: not world.workers())
    eventually("the outcome", lambda: world.condition("Succeeded"))
    world.delete("Job", "job-launcher")
    holds(lambda: world.launcher() is None and not world.workers(), 2)
    assert world.condition("Succeeded")["status"] == "True"


def test_a_job_that_was_never_seen_running_gets_a_false_running_condition(world: World) -> None:
    world.submit()
    world.started()
    world.launcher_ends("Complete")
    running = eventually("the condition", lambda: world.condition("Running"))
    assert running["status"] == "False"
    assert running["lastTransitionTime"] == world.status()["completionTime"]


def test_the_operator_creates_deleted_objects_again_while_the_job_runs(world: World) -> None:
    world.submit()
    world.started()
    for kind, name in (("Service", "job"), ("ConfigMap", "job-config"), ("Pod", "job-worker-1")):
        before = world.get(kind, name)
        assert before
        world.delete(kind, name)
        after = eventually(f"{kind} {name}", lambda kind=kind, name=name: world.get(kind, name))  # type: ignore[misc]
        assert after["metadata"]["uid"] != before["metadata"]["uid"]


def test_a_job_without_workers_runs_on_its_launcher(world: World) -> None:
    world.submit(workers=None, runLauncherAsWorker=True)
    world.started(workers=0)
    config = world.get("ConfigMap", "job-config")
    assert config
    assert config["data"]["hostfile"] == f"job-launcher.job.{world.namespace}.svc slots=1\n"
    world.phase(world.launcher_pod(), "Running")
    world.replicas({"Launcher": {"active": 1}, "Worker": {}})
    assert world.condition("Running")["status"] == "True"


def test_workers_on_the_network_of_the_node_resolve_names_of_the_cluster(world: World) -> None:
    container = {"name": "main", "image": "mpi-image"}
    theirs = {"spec": {"hostNetwork": True, "containers": [container]}}
    replicas = {"Launcher": {"template": {"spec": {"containers": [container]}}},
                "Worker": {"replicas": 2, "template": theirs}}  # fmt: skip
    world.submit(mpiReplicaSpecs=replicas)
    launcher = world.started()["spec"]["template"]["spec"]
    assert (launcher.get("hostNetwork"), launcher["dnsPolicy"]) == (None, "ClusterFirst")
    for worker in world.workers():
        spec = worker["spec"]
        assert spec["hostNetwork"] is True
        assert spec["dnsPolicy"] == "ClusterFirstWithHostNet"
        assert spec["dnsConfig"]["searches"] == [f"job.{world.namespace}.svc.cluster.local"]
        # The node's own sockets are in sight: its sshd must not pass for the worker's.
        command = spec["containers"][0]["startupProbe"]["exec"]["command"]
        assert "[listener]" in command[2]
