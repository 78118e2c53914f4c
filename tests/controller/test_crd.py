"""The CRD: deploy/ holds what the code makes, and no version drops a field of another one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from mpiboot.controller.install import manifests
from mpiboot.controller.install.crd import VERSIONS, crd
from tests.controller.conftest import REPOSITORY, mpi_job

if TYPE_CHECKING:
    from cluster.fixtures import Kubernetes

    from tests.controller.conftest import World


@pytest.mark.parametrize(("name", "content"), [*manifests.contents()], ids=[name for name, _ in manifests.contents()])
def test_deploy_holds_what_the_code_makes(name: str, content: str) -> None:
    assert (REPOSITORY / "deploy" / name).read_text() == content, "run: make manifests"


def test_all_versions_have_one_schema_but_for_the_dialect() -> None:
    schemas = []
    for version in crd()["spec"]["versions"]:
        schema = json.loads(json.dumps(version["schema"]))
        dialect = schema["openAPIV3Schema"]["properties"]["spec"]["properties"]["dialect"]
        assert dialect.pop("default") == version["name"]
        schemas.append(schema)
    assert schemas[0] == schemas[1] == schemas[2]
    assert [each["name"] for each in crd()["spec"]["versions"] if each["storage"]] == ["v2beta1"]


def path(world: World, version: str) -> str:
    return f"/apis/kubeflow.org/{version}/namespaces/{world.namespace}/mpijobs"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_job_keeps_its_dialect_through_every_version(bare_world: World, version: str) -> None:
    world = bare_world
    manifest = {**mpi_job(policy={"suspend": True, "managedBy": "kueue.x-k8s.io/multikueue"}),
                "apiVersion": f"kubeflow.org/{version}"}  # fmt: skip
    world.client.do("POST", path(world, version), manifest)
    for other in VERSIONS:
        found = world.client.do("GET", f"{path(world, other)}/job")
        assert found["spec"]["dialect"] == version
        found["metadata"].setdefault("labels", {})[f"by-{other}"] = "yes"
        world.client.do("PUT", f"{path(world, other)}/job", found)
    spec = world.job()["spec"]
    assert spec["dialect"] == version
    assert spec["runPolicy"] == manifest["spec"]["runPolicy"]


def test_the_api_refuses_more_workers_than_any_cluster_has(bare_world: World) -> None:
    for job in (mpi_job(workers=100_001), mpi_job(slotsPerWorker=65_536)):
        answer = bare_world.client.ask("POST", bare_world.path("MPIJob"), job)
        assert (answer.status, "should be less than or equal to" in answer.text) == (422, True)


def test_a_union_of_all_fields_survives_an_edit_through_v1(bare_world: World) -> None:
    world = bare_world
    manifest = mpi_job(
        policy={"suspend": True, "managedBy": "kueue.x-k8s.io/multikueue", "ttlSecondsAfterFinished": 5,
                "schedulingPolicy": {"minAvailable": 3, "minResources": {"cpu": "1", "memory": 2}}},
        sshAuthMountPath="/home/user/.ssh", mpiImplementation="Intel", launcherCreationPolicy="WaitForWorkersReady",
        runLauncherAsWorker=True, slotsPerWorker=3, mainContainer="main", cleanPodPolicy="All", backoffLimit=2,
    )  # fmt: skip
    container = manifest["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    container["resources"] = {"request": {"cpu": 1}}  # a misspelling that lives in old manifests
    world.create("MPIJob", manifest)
    through_v1 = world.client.do("GET", f"{path(world, 'v1')}/job")
    world.client.do("PUT", f"{path(world, 'v1')}/job", through_v1)
    assert world.job()["spec"] == {**manifest["spec"], "dialect": "v2beta1"}


@pytest.mark.parametrize(
    ("version", "changes", "accepted"),
    [
        ("v1alpha2", {"slotsPerWorker": 0}, False),
        ("v1alpha2", {"workers": 0}, False),
        ("v1alpha2", {}, True),
        ("v2beta1", {"slotsPerWorker": 0}, True),
        ("v2beta1", {"workers": 0}, True),
        ("v2beta1", {"mpiImplementation": "Other"}, False),
    ],
)
def test_the_api_refuses_what_the_crd_of_each_version_refused(
    bare_world: World, version: str, changes: dict[str, Any], accepted: bool
) -> None:
    manifest = {**mpi_job(**changes), "apiVersion": f"kubeflow.org/{version}"}
    answer = bare_world.client.ask("POST", f"{path(bare_world, version)}?dryRun=All", manifest)
    assert answer.ok == accepted, answer.text


@pytest.mark.usefixtures("client")
def test_kubectl_shows_columns_short_names_and_explanations(api_server: Kubernetes, bare_world: World) -> None:
    bare_world.submit(policy={"managedBy": "kueue.x-k8s.io/multikueue"})
    for short in ("mj", "mpij"):
        text = api_server.kubectl("get", short, "-n", bare_world.namespace)
        assert text.split()[:5] == ["NAME", "STATE", "WORKERS", "AGE", "REASON"]
    explained = api_server.kubectl("explain", "mpijobs.spec.runPolicy.cleanPodPolicy")
    assert "None (if not given), Running or All" in " ".join(explained.split())


@pytest.mark.usefixtures("client")
def test_the_manifests_are_accepted_by_a_server(api_server: Kubernetes) -> None:
    done = api_server.kubectl("apply", "--server-side", "--dry-run=server", "-f", str(REPOSITORY / "deploy/crd.yaml"))
    assert "mpijobs.kubeflow.org" in done


def test_the_operators_pod_may_run_where_pods_are_restricted(api_server: Kubernetes) -> None:
    objects = list(yaml.safe_load_all((REPOSITORY / "deploy" / "operator.yaml").read_text()))
    deployment = next(each for each in objects if each["kind"] == "Deployment")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": "restricted", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}  # fmt: skip
    api_server.kubectl("create", "-f", "-", given=json.dumps(namespace))
    template = deployment["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod", "namespace": "restricted"},
           "spec": template["spec"]}  # fmt: skip
    api_server.kubectl("create", "-f", "-", given=json.dumps(pod))
