"""Gang scheduling against an API server: a PodGroup beside each job that runs, and none that is left behind."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.controller.conftest import MERGE, PATIENCE, Client, World, eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cluster.fixtures import Kubernetes

    from tests.controller.conftest import Object, Operator

GROUPS = {"volcano": "scheduling.volcano.sh/v1beta1", "scheduler-plugins": "scheduling.x-k8s.io/v1alpha1"}
OWN = "mpiboot/openmpi"


def definition(api_version: str) -> Object:
    """A CRD of PodGroups without rules: the schedulers' own are tried with the schedulers, in tests/e2e."""
    group, _, version = api_version.partition("/")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup", "listKind": "PodGroupList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"podgroups.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [served]},
    }


@pytest.fixture(scope="module")
def pod_groups(client: Client) -> None:
    for api_version in GROUPS.values():
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        made = client.ask("POST", path, definition(api_version))
        if made.status == 409:  # the scheduler's own, of other tests
            wanted = definition(api_version)
            client.do("PATCH", f"{path}/{wanted['metadata']['name']}", {"spec": wanted["spec"]}, MERGE)
        else:
            assert made.ok, made.text
        eventually("PodGroups", lambda: client.ask("GET", f"/apis/{api_version}/podgroups").ok)  # noqa: B023 (at once)


@pytest.fixture(params=GROUPS)
def scheduler(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def gangs(
    scheduler: str,
    bare_world: World,
    pod_groups: None,  # noqa: ARG001 (they are there)
    unwatched: None,  # noqa: ARG001 (the usual operator rests)
    start_operator: Callable[..., Operator],
) -> Iterator[World]:
    """A namespace whose operator starts jobs as gangs."""
    operator = start_operator(
        f"--namespace={bare_world.namespace}", "--no-leader-election", f"--gang-scheduling={scheduler}"
    )
    yield bare_world
    operator.stop(15)


def group(world: World, scheduler: str, name: str = "job") -> Object | None:
    path = f"/apis/{GROUPS[scheduler]}/namespaces/{world.namespace}/podgroups/{name}"
    answer = world.client.ask("GET", path)
    return None if answer.status == 404 else answer.object


def test_a_group_comes_before_its_pods_and_follows_edits(gangs: World, scheduler: str) -> None:
    job = gangs.submit(image=OWN, policy={"schedulingPolicy": {"minResources": {"cpu": "1"}}})
    gangs.started()
    found = group(gangs, scheduler)
    assert found
    assert found["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
    assert (found["spec"]["minMember"], found["spec"]["minResources"]) == (3, {"cpu": "1"})
    first = min(int(pod["metadata"]["resourceVersion"]) for pod in gangs.workers())
    assert int(found["metadata"]["resourceVersion"]) < first
    gangs.patch("MPIJob", "job", {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 4}}}})
    eventually("five members", lambda: (group(gangs, scheduler) or {})["spec"]["minMember"] == 5)
    gangs.patch("MPIJob", "job", {"spec": {"runPolicy": {"schedulingPolicy": None}}})
    eventually("no resources", lambda: "minResources" not in (group(gangs, scheduler) or {})["spec"])


def test_a_group_goes_when_the_job_ends_or_is_suspended(gangs: World, scheduler: str) -> None:
    gangs.submit(image=OWN)
    gangs.started()
    gangs.patch("MPIJob", "job", {"spec": {"runPolicy": {"suspend": True}}})
    eventually("no group", lambda: group(gangs, scheduler) is None)
    gangs.patch("MPIJob", "job", {"spec": {"runPolicy": {"suspend": False}}})
    eventually("the group again", lambda: group(gangs, scheduler))
    gangs.started()
    gangs.run_workers(ready=True)
    gangs.launcher_ends("Complete")
    eventually("Succeeded", lambda: gangs.condition("Succeeded"))
    eventually("no group", lambda: group(gangs, scheduler) is None)


def test_the_schedulers_own_fields_stay(gangs: World, scheduler: str) -> None:
    gangs.submit(image=OWN)
    gangs.started()
    path = f"/apis/{GROUPS[scheduler]}/namespaces/{gangs.namespace}/podgroups/job"
    theirs: dict[str, Any] = {"spec": {"theirs": "x"}, "status": {"phase": "Inqueue"}}
    gangs.client.do("PATCH", path, theirs, "application/merge-patch+json")
    gangs.patch("MPIJob", "job", {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 3}}}})
    eventually("four members", lambda: (group(gangs, scheduler) or {})["spec"]["minMember"] == 4)
    found = group(gangs, scheduler)
    assert found
    assert (found["spec"]["theirs"], found["status"]) == ("x", {"phase": "Inqueue"})


def test_a_group_of_another_owner_stops_the_job(gangs: World, scheduler: str) -> None:
    path = f"/apis/{GROUPS[scheduler]}/namespaces/{gangs.namespace}/podgroups"
    theirs = {
        "apiVersion": GROUPS[scheduler],
        "kind": "PodGroup",
        "metadata": {"name": "job"},
        "spec": {"minMember": 7},
    }
    gangs.client.do("POST", path, theirs)
    gangs.submit(image=OWN)
    said = gangs.said("ErrResourceExists")
    assert said["message"] == 'Resource "job" of Kind "PodGroup" already exists and is not managed by MPIJob'
    assert not gangs.workers()
    found = group(gangs, scheduler)
    assert found
    assert found["spec"] == {"minMember": 7}


def test_an_operator_without_the_schedulers_crd_says_what_to_do(api_server: Kubernetes, client: Client) -> None:
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.{GROUPS['volcano'].partition('/')[0]}"
    assert client.ask("DELETE", path).status in {200, 404}
    eventually("no PodGroups", lambda: not client.ask("GET", f"/apis/{GROUPS['volcano']}").ok)
    flags = [f"--kubeconfig={api_server.kubeconfig}", "--monitoring-port=0", "--checkin-port=0"]
    argv = [sys.executable, "-m", "mpiboot", "operator", *flags, "--gang-scheduling=volcano"]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].endswith(
        "the cluster does not know PodGroup of scheduling.volcano.sh/v1beta1, which gang scheduling with volcano "
        "needs: "
        "install that scheduler first, or start the operator without --gang-scheduling"
    )
