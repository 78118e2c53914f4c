"""Invalid jobs, refusals of the API server, and objects of other owners."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from tests.controller.conftest import eventually, holds, mpi_job

if TYPE_CHECKING:
    from tests.controller.conftest import World


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"workers": 0}, "spec.mpiReplicaSpecs.Worker.replicas"),
        ({"policy": {"cleanPodPolicy": "Sometimes"}}, "spec.runPolicy.cleanPodPolicy"),
        ({"slotsPerWorker": -1}, "spec.slotsPerWorker"),
        ({"workers": 5001}, "spec.mpiReplicaSpecs.Worker.replicas: must be <= 5000, is 5001"),
        ({"name": "a" * 55, "workers": 1000}, "metadata.name"),
        ({"name": "4you"}, "metadata.name"),
        ({"mpiReplicaSpecs": {}}, "spec.mpiReplicaSpecs.Launcher"),
    ],
)
def test_an_invalid_job_gets_an_event_and_nothing_else(world: World, changes: dict[str, Any], said: str) -> None:
    name = world.submit(**changes)["metadata"]["name"]
    event = world.said("ValidationError")
    assert event["type"] == "Warning"
    assert said in event["message"]
    eventually("the state", lambda: world.status(name).get("state") == "Invalid")
    assert world.status(name).get("conditions") is None
    for kind in ("Pod", "Service", "Secret", "Job"):
        assert world.all(kind) == []
    assert event["count"] == 1


def test_an_elastic_job_of_impossible_numbers_starts_nothing(world: World) -> None:
    job = mpi_job(slotsPerWorker=0)
    replicas = job["spec"]["mpiReplicaSpecs"]
    replicas["Launcher"] = copy.deepcopy(replicas["Launcher"])  # both roles share a template
    words = ["horovodrun", "-np", "2", "--min-np", "3", "--host-discovery-script", "/etc/mpi/discover_hosts.sh", "x"]
    replicas["Launcher"]["template"]["spec"]["containers"][0]["command"] = words
    world.create("MPIJob", job)
    message = world.said("ValidationError")["message"]
    assert "slotsPerWorker is 0" in message
    assert "-np 2 is less than --min-np 3" in message
    eventually("the state", lambda: world.status().get("state") == "Invalid")
    for kind in ("Pod", "Service", "Secret", "Job"):
        assert world.all(kind) == []


def test_an_invalid_job_runs_after_it_is_corrected(world: World) -> None:
    world.submit(slotsPerWorker=-1)
    world.said("ValidationError")
    world.patch("MPIJob", "job", {"spec": {"slotsPerWorker": 2}})
    world.started()
    eventually("the state", lambda: world.status().get("state") == "Waiting")


def test_a_running_job_survives_an_invalid_edit(world: World) -> None:
    world.submit()
    world.started()
    world.patch("MPIJob", "job", {"spec": {"runPolicy": {"cleanPodPolicy": "Sometimes"}}})
    world.said("ValidationError")
    world.launcher_ends("Complete")
    eventually("the outcome", lambda: world.condition("Succeeded"))


OTHERS: dict[str, dict[str, Any]] = {
    "Service": {"metadata": {"name": "job"}, "spec": {"clusterIP": "None", "selector": {"mine": "yes"}}},
    "ConfigMap": {"metadata": {"name": "job-config"}, "data": {"mine": "yes"}},
    "Secret": {"metadata": {"name": "job-ssh"}, "stringData": {"mine": "yes"}},
    "Pod": {"metadata": {"name": "job-worker-1"}, "spec": {"containers": [{"name": "mine", "image": "mine"}]}},
    "Job": {
        "metadata": {"name": "job-launcher"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "mine", "image": "mine"}]}}},
    },
}


@pytest.mark.parametrize("kind", OTHERS)
def test_objects_of_other_owners_are_not_changed(world: World, kind: str) -> None:
    theirs = world.create(kind, OTHERS[kind])
    name = theirs["metadata"]["name"]
    world.submit()
    event = world.said("ErrResourceExists")
    assert event["message"] == f'Resource "{name}" of Kind "{kind}" already exists and is not managed by MPIJob'
    assert event["type"] == "Warning"

    def untouched() -> bool:
        found = world.get(kind, name)
        return bool(found and found["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"])

    holds(untouched, 1)
    eventually("the reason in the status", lambda: "already exists" in world.status().get("reason", ""))
    world.delete(kind, name)
    world.started()


def test_a_pod_named_like_a_worker_outside_the_job_is_not_changed(world: World) -> None:
    labels = {"training.kubeflow.org/operator-name": "mpi-operator", "training.kubeflow.org/job-name": "job",
              "training.kubeflow.org/job-role": "worker"}  # fmt: skip
    stranger = {"metadata": {"name": "job-worker-7", "labels": labels}, "spec": OTHERS["Pod"]["spec"]}
    world.create("Pod", stranger)
    world.submit()
    world.started(3)
    world.launcher_ends("Complete")
    eventually("the stranger alone", lambda: [p["metadata"]["name"] for p in world.workers()] == ["job-worker-7"])


def test_an_exhausted_quota_is_an_event_and_the_job_waits(world: World) -> None:
    quota = {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}}
    path = f"/api/v1/namespaces/{world.namespace}/resourcequotas"
    world.client.do("POST", path, quota)
    # No quota controller runs here: the admission plugin waits for a first count.
    status = {"status": {"hard": {"pods": "1"}, "used": {"pods": "0"}}}
    world.client.do("PATCH", f"{path}/few/status", status, "application/merge-patch+json")
    world.submit()
    assert "exceeded quota" in world.said("FailedCreate")["message"]
    reason = eventually("the reason", lambda: world.status().get("reason"))
    assert "exceeded quota" in reason
    assert "Kueue starts only jobs that fit into it as a whole" in reason
    world.client.do("DELETE", f"{path}/few")
    eventually("both workers", lambda: len(world.workers()) == 2)
    eventually("no more trouble", lambda: world.status().get("state") == "Waiting")


def test_a_failing_webhook_is_an_event_only_if_it_lasts(world: World) -> None:
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    hook = {
        "name": "broken.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": world.namespace}},
        "rules": [rule],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    world.client.do("POST", path, {"metadata": {"name": world.namespace}, "webhooks": [hook]})
    try:
        stranger = {"metadata": {"name": "stranger"}, "spec": OTHERS["Pod"]["spec"]}
        dry_run = f"{world.path('Pod')}?dryRun=All"
        eventually("a webhook at work", lambda: world.client.ask("POST", dry_run, stranger).status == 500)
        world.submit()
        assert "failed calling webhook" in world.said("FailedCreate")["message"]
        eventually("the reason", lambda: "failed calling webhook" in world.status().get("reason", ""))
        assert world.status()["state"] == "Pending"
        assert world.condition("Created")
    finally:
        world.client.do("DELETE", f"{path}/{world.namespace}")
    world.started()
    eventually("no more trouble", lambda: world.status().get("state") == "Waiting")


def test_the_users_restart_policy_in_a_template_is_warned_about(world: World) -> None:
    manifest = mpi_job()
    manifest["spec"]["mpiReplicaSpecs"]["Launcher"]["template"] = {
        "spec": {"restartPolicy": "Always", "containers": [{"name": "main", "image": "x"}]}
    }
    world.create("MPIJob", manifest)
    event = world.said("SetPodTemplateRestartPolicy")
    assert event["type"] == "Warning"
    assert world.started()["spec"]["template"]["spec"]["restartPolicy"] == "OnFailure"


def test_a_job_that_another_operator_began_continues(world: World) -> None:
    made = world.submit(policy={"managedBy": "kueue.x-k8s.io/multikueue"})
    reference = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "job", "controller": True,
                 "uid": made["metadata"]["uid"]}  # fmt: skip
    for kind in ("Service", "ConfigMap", "Secret", "Job"):
        manifest = OTHERS[kind]
        world.create(kind, {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": [reference]}})
    world.patch("MPIJob", "job", {"spec": {"runPolicy": {"managedBy": "kubeflow.org/mpi-operator"}}})
    world.replicas({"Launcher": {}, "Worker": {}})
    world.launcher_ends("Complete")
    eventually("the outcome", lambda: world.condition("Succeeded"))
    assert world.events("ErrResourceExists") == []
