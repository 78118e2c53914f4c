"""The installed operator: deploy/ applied, its image in a restricted namespace, its pod lost and replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from mpiboot.controller.install.install import IMAGE, NAME, NAMESPACE
from tests.conftest import REPOSITORY, missing
from tests.e2e.jobs import Jobs, one_on_each, pi, ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import docker
    from cluster.fixtures import Cluster

LATE = 15  # seconds


@pytest.fixture
def deployed(cluster: Cluster, docker_engine: docker.DockerClient, installed: Path, space: str) -> Iterator[Jobs]:
    """The Deployment, for one namespace, because other tests start operators of their own."""
    assert installed.exists()
    if not docker_engine.images.list(IMAGE):
        missing(f"the image {IMAGE}", "make images NAMES=operator")
    cluster.load(IMAGE)
    objects = yaml.safe_load_all((REPOSITORY / "deploy" / "operator.yaml").read_text())
    deployment: dict[str, Any] = next(each for each in objects if each["kind"] == "Deployment")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container["env"].append({"name": "MPIBOOT_OPERATOR_NAMESPACE", "value": space})
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=yaml.safe_dump(deployment))
    jobs = Jobs(cluster, space)
    try:
        cluster.kubectl("rollout", "status", f"deployment/{NAME}", "-n", NAMESPACE, "--timeout=90s")
        yield jobs
    finally:
        jobs.delete_all()
        cluster.kubectl("delete", "deployment", NAME, "-n", NAMESPACE)


def test_an_installed_operator_runs_jobs_and_counts_them(deployed: Jobs, loaded: Callable[[str], str]) -> None:
    assert ranks(deployed.run(pi("installed", loaded("openmpi")))) == one_on_each("installed", 2)
    pod, = deployed.cluster.kubectl("get", "pods", "-n", NAMESPACE, "-o", "name").split()
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod.removeprefix('pod/')}:8080/proxy/metrics"
    assert "mpi_operator_jobs_successful_total 1" in deployed.cluster.kubectl("get", "--raw", path)


def test_a_lost_operator_pod_is_replaced_and_its_jobs_go_on(deployed: Jobs, loaded: Callable[[str], str]) -> None:
    image = loaded("openmpi")
    job = pi("outlives", image, runPolicy={"backoffLimit": 0})
    script = f"case $(hostname) in *-worker-1) sleep {LATE};; esac"
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["initContainers"] = [
        {"name": "late", "image": image, "imagePullPolicy": "IfNotPresent", "command": ["sh", "-c", script]}]
    name = deployed.submit(job)
    deployed.until(name, "a launcher that waits", lambda: deployed.launcher_starts(name) == 1)
    deployed.cluster.kubectl("delete", "pods", "-n", NAMESPACE, "--all", "--grace-period=0", "--force")
    assert deployed.end(name) == "Succeeded", deployed.report(name)
    assert deployed.launcher_starts(name) == 1
    assert ranks(deployed.output(name)) == one_on_each(name, 2)
