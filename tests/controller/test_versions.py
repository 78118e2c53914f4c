"""Jobs of older versions: their stored fields, their pods and their status."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from mpiboot.controller.install.crd import VERSIONS
from tests.controller.conftest import eventually, holds

if TYPE_CHECKING:
    from tests.controller.conftest import Object, World

MANIFESTS = Path(__file__).parents[1] / "job" / "manifests"
OLD = ("v1", "v1alpha2", "v1alpha1")


def manifest(version: str, **spec: Any) -> Object:  # noqa: ANN401
    """The version's manifest of tests/job, under the name that this folder's tests look for."""
    found: Object = yaml.safe_load((MANIFESTS / f"{version}.yaml").read_text())
    return {**found, "metadata": {"name": "job"}, "spec": {**found["spec"], **spec}}


def path(world: World, version: str, sub: str = "") -> str:
    return f"/apis/kubeflow.org/{version}/namespaces/{world.namespace}/mpijobs{sub}"


def submit(world: World, version: str, **spec: Any) -> Object:  # noqa: ANN401
    return world.client.do("POST", path(world, version), manifest(version, **spec))


def job_status(world: World) -> tuple[list[tuple[str, str, str, str]], Object]:
    """Type, status, reason and message of the conditions, and what there is of each role."""
    status = world.status()
    conditions = [(c["type"], c["status"], c["reason"], c["message"]) for c in status["conditions"]]
    return conditions, status["replicaStatuses"]


def start(world: World, workers: int) -> None:
    """Let workers and launcher run, and wait until that is in the status."""
    world.started(workers)
    world.run_workers(ready=True)
    world.phase(world.launcher_pod(), "Running")
    eventually("Running", lambda: world.condition("Running").get("status") == "True")


@pytest.mark.usefixtures("unwatched")  # or the operator writes between a test's reading and its writing
@pytest.mark.parametrize("version", VERSIONS)
def test_no_field_is_lost_through_any_version(bare_world: World, version: str) -> None:
    world = bare_world
    given = manifest(version) if version in OLD else {**manifest("v1"), "apiVersion": f"kubeflow.org/{version}"}
    world.client.do("POST", path(world, version), given)
    status = {"launcherStatus": "Active", "workerReplicas": 2, "startTime": "2026-01-02T03:04:05Z"}
    for other in VERSIONS:
        found = world.client.do("GET", path(world, other, "/job"))
        assert found["spec"] == {**given["spec"], "dialect": version}
        world.client.do("PUT", path(world, other, "/job"), found)
        found = world.client.do("GET", path(world, other, "/job"))
        world.client.do("PUT", path(world, other, "/job/status"), {**found, "status": status})
        found = world.client.do("GET", path(world, version, "/job"))
        assert found["spec"] == {**given["spec"], "dialect": version}
        assert found["status"] == status


def test_only_v1alpha1_does_without_replica_specs(bare_world: World) -> None:
    for version in VERSIONS:
        given = {**manifest("v1alpha1"), "apiVersion": f"kubeflow.org/{version}"}
        answer = bare_world.client.ask("POST", path(bare_world, version, "?dryRun=All"), given)
        assert answer.ok == (version == "v1alpha1"), answer.text
        assert answer.ok or "spec.mpiReplicaSpecs must be given" in answer.text


@pytest.mark.parametrize(("version", "labels"), [
    ("v1alpha2", ("mpi_job_name", "mpi_role_type", "group_name")),
    ("v1", ("mpi-job-name", "mpi-job-role", "group-name")),
])  # fmt: skip
def test_a_job_succeeds_in_the_words_of_its_version(world: World, version: str, labels: tuple[str, str, str]) -> None:
    workers = 2 if version == "v1" else 1
    submit(world, version)
    start(world, workers)
    name, role, group = labels
    selector = f"{name}=job,{role}=worker,{group}=kubeflow.org"
    found = world.client.do("GET", world.path("Pod") + f"?labelSelector={selector}")["items"]
    assert [pod["metadata"]["name"] for pod in found] == [f"job-worker-{index}" for index in range(workers)]
    who = f"MPIJob {world.namespace}/job"
    running = ("Running", "True", "MPIJobRunning", f"{who} is running.")
    assert job_status(world) == (
        [("Created", "True", "MPIJobCreated", f"{who} is created."), running],
        {"Launcher": {"active": 1}, "Worker": {"active": workers}},
    )
    assert world.status()["lastReconcileTime"]
    world.launcher_ends("Complete")
    eventually("the end", lambda: world.condition("Succeeded"))
    world.replicas({"Launcher": {"succeeded": 1}, "Worker": {}})
    assert job_status(world)[0] == [
        ("Created", "True", "MPIJobCreated", f"{who} is created."),
        ("Running", "False", "MPIJobRunning", f"{who} is running."),
        ("Succeeded", "True", "MPIJobSucceeded", f"{who} successfully completed."),
    ]
    assert world.status()["completionTime"]
    eventually("no workers", lambda: world.workers() == [])  # cleanPodPolicy: Running


def test_restarting_and_running_replace_each_other_and_failed_is_the_end(world: World) -> None:
    submit(world, "v1alpha2")
    start(world, 1)
    first = world.all("Pod")
    pod = next(each for each in first if each["metadata"]["name"].startswith("job-launcher"))
    world.phase(pod, "Failed")
    world.patch("Job", "job-launcher", {"status": {"failed": 1}}, "status")
    eventually("Restarting", lambda: world.condition("Restarting"))
    who = f"MPIJob {world.namespace}/job"
    restarting = ("Restarting", "True", "MPIJobRestarting", f"{who} is restarting.")
    assert [each[0] for each in job_status(world)[0]] == ["Created", "Restarting"]
    assert job_status(world)[0][1] == restarting
    world.phase(world.launcher_pod(), "Running")
    eventually("Running", lambda: world.condition("Running"))
    assert [each[0] for each in job_status(world)[0]] == ["Created", "Running"]
    world.launcher_ends("Failed", failed=7, reason="BackoffLimitExceeded", message="Job has reached the limit")
    eventually("the end", lambda: world.condition("Failed"))
    failed = ("Failed", "True", "MPIJobFailed", f"{who} has failed")
    ended = [("Created", "True"), ("Running", "False"), ("Failed", "True")]
    assert [each[:2] for each in job_status(world)[0]] == ended
    assert job_status(world)[0][2] == failed
    # The condition omits the cause.
    assert "Job has reached the limit" in world.status()["reason"]
    assert "Job has reached the limit" in world.said("MPIJobFailed")["message"]
    before = world.status()
    world.patch("MPIJob", "job", {"metadata": {"labels": {"touched": "yes"}}})
    holds(lambda: world.status() == before, 1)


def test_the_status_still_counts_workers_that_stay(world: World) -> None:
    submit(world, "v1alpha2", cleanPodPolicy="None")
    start(world, 1)
    world.launcher_ends("Complete")
    eventually("the end", lambda: world.condition("Succeeded"))
    world.replicas({"Launcher": {"succeeded": 1}, "Worker": {"active": 1}})


def test_evictions_keep_their_reason(world: World) -> None:
    given = manifest("v1")["spec"]["mpiReplicaSpecs"]  # elastic: there the evicted worker would be replaced
    given["Launcher"]["template"]["spec"]["containers"][0].update(command=["mpirun"], args=["python", "train.py"])
    submit(world, "v1", mpiReplicaSpecs=given)
    start(world, 2)
    world.phase(world.workers()[0], "Failed", reason="Evicted", message="The node was low on memory.")
    assert world.said("MPIJobEvicted")["message"] == "1/2 workers are evicted"
    world.launcher_ends("Failed", failed=7, reason="BackoffLimitExceeded")
    failed = eventually("the end", lambda: world.condition("Failed"))
    assert (failed["reason"], failed["message"]) == ("MPIJobEvicted", "1/2 workers are evicted")


def test_malformed_fields_are_events_and_no_refusal(world: World) -> None:
    submit(world, "v1alpha2")
    world.started(1)

    def told() -> set[str]:
        return {event["message"] for event in world.events("ValidationWarning")}

    eventually("a word on `request`", lambda: any("resources.request: unknown field" in text for text in told()))
    eventually("a word on `None`", lambda: any("Worker.restartPolicy: must be one of" in text for text in told()))
    assert world.events("ValidationError") == []


def test_the_discovery_script_of_v1_prints_slots(world: World) -> None:
    submit(world, "v1", slotsPerWorker=3)
    start(world, 2)

    def lines() -> list[str]:
        config = world.get("ConfigMap", "job-config")
        assert config
        return [line for line in config["data"]["discover_hosts.sh"].splitlines() if line.startswith("echo job-")]

    hosts = [f"echo job-worker-{index}.job.{world.namespace}.svc:3" for index in range(2)]
    eventually("both workers", lambda: lines() == hosts)


def test_a_job_of_v1alpha1_has_the_status_of_its_version(world: World) -> None:
    submit(world, "v1alpha1")
    eventually("workers", lambda: len(world.workers()) == 2)
    assert world.launcher() is None
    for pod in world.workers():
        assert pod["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "8"}
    world.run_workers(ready=True)
    eventually("a launcher", world.launcher)
    world.phase(world.launcher_pod(), "Running")

    def words() -> tuple[object, object]:
        status = world.status()
        return status.get("launcherStatus"), status.get("workerReplicas")

    eventually("Active", lambda: words() == ("Active", 2))
    world.launcher_ends("Complete")
    eventually("Succeeded", lambda: words() == ("Succeeded", 0))
    assert world.status()["startTime"]
    assert world.status()["completionTime"]
    eventually("no workers", lambda: world.workers() == [])
