"""A cluster that had mpi-operator's CRD: its stored jobs stay, and run, after this project's CRD replaces it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from cluster.fixtures import started
from cluster.home import Home

from mpiboot.controller.install.crd import VERSIONS
from tests.controller.conftest import REPOSITORY, Client, World, eventually, mpi_job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cluster.fixtures import Kubernetes

    from tests.controller.conftest import Operator

# One version, and a schema that lets everything through: what is stored is what was given, with no defaults of ours.
OLD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "mpijobs.kubeflow.org"},
    "spec": {
        "group": "kubeflow.org",
        "scope": "Namespaced",
        "names": {"kind": "MPIJob", "plural": "mpijobs", "singular": "mpijob"},
        "versions": [
            {
                "name": "v2beta1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@pytest.fixture
def cluster_before(tmp_path_factory: pytest.TempPathFactory, api_server: Kubernetes) -> Iterator[Kubernetes]:
    """An API server for this test alone: the jobs of other tests need the new CRD."""
    assert api_server.kubeconfig.exists()  # there is one to start
    with started(Home(tmp_path_factory.mktemp("before"))) as kubernetes:
        yield kubernetes


def test_a_job_stored_under_the_old_crd_runs_under_the_new_one(
    cluster_before: Kubernetes, start_operator: Callable[..., Operator]
) -> None:
    cluster_before.kubectl("apply", "--server-side", "-f", "-", given=json.dumps(OLD))
    client = Client.of(cluster_before.kubeconfig)
    world = World(client, "default")
    eventually("the old API", lambda: client.ask("GET", world.path("MPIJob")).ok)
    given = mpi_job(slotsPerWorker=2, sshAuthMountPath="/home/mpiuser/.ssh")
    # That schema accepts it, and the operator ignores it.
    given["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["misspelt"] = {"cpu": 1}
    before = world.create("MPIJob", given)
    done = {**before, "metadata": {"name": "done"}}
    finished = {"conditions": [{"type": "Succeeded", "status": "True", "reason": "MPIJobSucceeded", "message": "x"}],
                "completionTime": "2026-01-02T03:04:05Z"}  # fmt: skip
    world.create("MPIJob", done)
    world.patch("MPIJob", "done", {"status": finished}, "status")

    cluster_before.kubectl("apply", "--server-side", "-f", str(REPOSITORY / "deploy" / "crd.yaml"))
    for version in VERSIONS:
        path = f"/apis/kubeflow.org/{version}/namespaces/default/mpijobs/job"
        found = eventually(f"the job through {version}", lambda path=path: readable(client, path))  # type: ignore[misc]
        assert found["metadata"]["uid"] == before["metadata"]["uid"]
        assert found["spec"] == {**given["spec"], "dialect": "v2beta1"}
    start_operator(f"--kubeconfig={cluster_before.kubeconfig}", "--no-leader-election")
    container = world.started()["spec"]["template"]["spec"]["containers"][0]
    assert {"name": "OMPI_MCA_orte_set_default_slots", "value": "2"} in container["env"]
    world.launcher_ends("Complete")
    eventually("the outcome", lambda: world.condition("Succeeded"))
    # A job that had finished does not run again.
    assert world.launcher("done") is None
    assert world.condition("Succeeded", "done")
    client.close()


def readable(client: Client, path: str) -> object:
    """The object, once the version is served with the defaults of its schema."""
    answer = client.ask("GET", path)
    return answer.object if answer.ok and "dialect" in answer.object["spec"] else None
