"""The Helm chart: every value that the other chart has names for is rendered, and what is installed runs jobs."""

from __future__ import annotations

import json
import subprocess
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from cluster import versions

from mpiboot import __version__
from mpiboot.controller.install.install import IMAGE
from tests.conftest import REPOSITORY, missing
from tests.e2e.jobs import Jobs, one_on_each, pi, ranks
from tests.systems.shell import Shell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import docker
    from cluster.fixtures import Cluster

    Render = Callable[..., dict[str, dict[str, Any]]]

CHART = REPOSITORY / "deploy" / "chart"
VALUES: dict[str, Any] = {
    "image": {"repository": "registry.example/team/operator", "tag": "v7", "digest": f"sha256:{64 * '0'}",
              "pullPolicy": "Always"},
    "namespace": {"create": True, "name": "machine-room"},
    "replicaCount": 3,
    "serviceAccount": {"create": True, "name": "conductor", "annotations": {"role": "mpi"}},
    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "podAnnotations": {"team": "hpc"},
    "imagePullSecrets": [{"name": "registry"}],
    "podSecurityContext": {"runAsUser": 5},
    "securityContext": {"readOnlyRootFilesystem": False},
    "settings": {"delivery-image": "mpiboot/delivery:1", "workers": 4},
}


@pytest.fixture(scope="session")
def helm() -> Path:
    path = Path(versions.program("helm"))
    return path if path.exists() else missing("helm", ".venv/bin/python tools/cluster build helm")


def template(helm: Path, release: str, values: object) -> list[dict[str, Any]]:
    """The objects that `helm template` makes of the chart with these values."""
    # Without a cluster helm knows no version of one.
    command = [str(helm), "template", release, str(CHART), "--kube-version", versions.KUBERNETES,
               "--namespace", "default", "--values", "-"]
    done = subprocess.run(command, input=json.dumps(values), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


@pytest.fixture
def render(helm: Path) -> Render:
    """The rendered objects by kind."""
    return lambda **values: {each["kind"]: each for each in template(helm, "metal", values)}


# What differs on purpose: a release has names and a label of its own.
OF_A_RELEASE = {
    "mpiboot-operator-checkin": "mpiboot-checkin",
    "mpiboot-operator-mpijobs-view": "mpiboot-mpijobs-view",
    "mpiboot-operator-mpijobs-edit": "mpiboot-mpijobs-edit",
}
LEFT_OUT = ("app.kubernetes.io/instance",)


def as_plain(found: Any) -> Any:  # noqa: ANN401
    """A rendered object without what differs on purpose from the plain manifest."""
    if isinstance(found, dict):
        return {key: as_plain(value) for key, value in found.items() if key not in LEFT_OUT}
    if isinstance(found, list):
        return [as_plain(each) for each in found]
    return OF_A_RELEASE.get(found, found) if isinstance(found, str) else found


def by_name(objects: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(each["kind"], each["metadata"]["name"]): each for each in objects}


def test_the_chart_with_its_defaults_renders_the_plain_manifest(helm: Path) -> None:
    plain = list(yaml.safe_load_all((REPOSITORY / "deploy" / "operator.yaml").read_text()))
    rendered = [as_plain(each) for each in template(helm, "mpiboot-operator", {})]
    assert len(rendered) == len(plain)
    assert by_name(rendered) == by_name(plain)


def test_the_chart_has_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def test_the_tests_set_every_value() -> None:
    known = yaml.safe_load((CHART / "values.yaml").read_text())
    assert set(known) == {*VALUES, "nameOverride", "fullnameOverride"}


@pytest.mark.promise("D: helm install with a values.yaml renders every value, also those that the other chart ignores")
def test_every_value_is_rendered(render: Render) -> None:
    found = render(**VALUES)
    deployment, account = found["Deployment"]["spec"], found["ServiceAccount"]["metadata"]
    template = deployment["template"]
    pod, main = template["spec"], template["spec"]["containers"][0]
    assert found["Namespace"]["metadata"]["name"] == "machine-room"
    assert {found[kind]["metadata"]["namespace"] for kind in ("Deployment", "Service", "ServiceAccount", "Role")} == {
        "machine-room"}
    pinned = f"sha256:{64 * '0'}"
    assert (main["image"], main["imagePullPolicy"]) == (f"registry.example/team/operator:v7@{pinned}", "Always")
    assert deployment["replicas"] == VALUES["replicaCount"]
    assert (account["name"], account["annotations"]) == ("conductor", {"role": "mpi"})
    assert pod["serviceAccountName"] == found["ClusterRoleBinding"]["subjects"][0]["name"] == "conductor"
    assert main["resources"] == VALUES["resources"]
    assert pod["securityContext"]["runAsUser"] == 5
    assert not main["securityContext"]["readOnlyRootFilesystem"]
    assert template["metadata"]["annotations"] == VALUES["podAnnotations"]
    for name in ("nodeSelector", "tolerations", "affinity", "imagePullSecrets"):
        assert pod[name] == VALUES[name]
    variables = {each["name"]: each.get("value") for each in main["env"]}
    assert variables["MPIBOOT_OPERATOR_DELIVERY_IMAGE"] == "mpiboot/delivery:1"
    assert variables["MPIBOOT_OPERATOR_WORKERS"] == "4"


@pytest.mark.promise("D: helm install with a values.yaml renders every value, also those that the other chart ignores")
def test_defaults_and_names(render: Render) -> None:
    found = render()
    assert found["Namespace"]["metadata"]["name"] == "mpi-operator"
    main = found["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    # No registry has this name, so Kubernetes must not look for it.
    assert (main["image"], main["imagePullPolicy"]) == (f"mpiboot/operator:{__version__}", "Never")
    assert found["Deployment"]["metadata"]["name"] == "metal-mpiboot-operator"
    assert render(nameOverride="x")["Deployment"]["metadata"]["name"] == "metal-x"
    assert render(fullnameOverride="y")["Deployment"]["metadata"]["name"] == "y"
    assert "Namespace" not in render(namespace={"create": False, "name": "elsewhere"})
    assert "ServiceAccount" not in render(serviceAccount={"create": False, "name": "mine"})


@pytest.fixture
def release(helm: Path, cluster: Cluster, docker_engine: docker.DockerClient, namespace: str,
            tmp_path: Path) -> Iterator[Jobs]:
    """The chart as a user installs it, for one namespace of jobs, and for the namespace of a test's own."""
    assert helm.exists()
    if not docker_engine.images.list(IMAGE):
        missing(f"the image {IMAGE}", "make images NAMES=operator")
    cluster.load(IMAGE)
    name = f"d-{uuid.uuid4().hex[:6]}"
    shell = Shell(cluster, namespace, tmp_path)
    # Other operators' Leases are of the whole cluster, and this one is for a single namespace.
    values = {"namespace": {"name": name}, "resources": {}, "settings": {"namespace": namespace, "peer-leases": ""}}
    jobs = Jobs(cluster, namespace)
    try:
        shell(f"helm install {name} {CHART} -f - --wait --timeout 120s", given=json.dumps(values), timeout=150)
        yield jobs
    finally:
        jobs.delete_all()
        shell(f"kubectl get pods -n {name}; kubectl logs -n {name} deployment/{name}-mpiboot-operator || true;"
              f"helm uninstall {name} --wait")


@pytest.mark.promise("D: what the chart renders is an operator that runs jobs")
def test_what_is_installed_runs_jobs(release: Jobs, loaded: Callable[[str], str]) -> None:
    assert ranks(release.run(pi("charted", loaded("openmpi")))) == one_on_each("charted", 2)
