"""A v1alpha1 job as the prototypes emitted it, on the node: one template, the image's own command."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.foreign.build import build

if TYPE_CHECKING:
    from collections.abc import Callable

    import docker
    from cluster.fixtures import Cluster

    from tests.systems.shell import Shell

HERE = Path(__file__).parent
NAME = "benchmark"
LATE = "case $(hostname) in *-worker-1) sleep 8;; esac"


@pytest.fixture
def manifest(docker_engine: docker.DockerClient, image: Callable[[str], str], cluster: Cluster) -> Callable[..., str]:
    tag = build(docker_engine, HERE / "v1alpha1", base=image("openmpi"), tag="b-v1alpha1")

    def written(**spec: Any) -> str:  # noqa: ANN401
        container = {"name": NAME, "image": cluster.load(tag), "imagePullPolicy": "IfNotPresent"}
        late = {**container, "name": "late", "command": ["sh", "-c", LATE]}
        template = {"spec": {"initContainers": [late], "containers": [container]}}
        return json.dumps({
            "apiVersion": "kubeflow.org/v1alpha1", "kind": "MPIJob", "metadata": {"name": NAME},
            "spec": {"template": template, **spec},
        })  # fmt: skip

    return written


@pytest.mark.promise("B: a v1alpha1 manifest with its fields runs")
@pytest.mark.promise("B: v1alpha1's status: launcherStatus, workerReplicas and times")
@pytest.mark.promise("B: the launcher starts only after all workers are ready")
@pytest.mark.promise("B: without a command the image's own command runs")
def test_a_v1alpha1_job_runs_its_images_own_command(shell: Shell, manifest: Callable[..., str]) -> None:
    text = manifest(replicas=2, slotsPerWorker=2, backoffLimit=0, activeDeadlineSeconds=200)
    shell("kubectl apply -f -", given=text)
    assert shell.ended(NAME) == "Succeeded", shell.report()
    output = shell(f"kubectl logs $(kubectl get pods -l mpi_job_name={NAME},mpi_role_type=launcher -o name)")
    assert Counter(line for line in output.splitlines() if line.startswith("rank on ")) == {
        f"rank on {NAME}-worker-0": 2, f"rank on {NAME}-worker-1": 2}  # fmt: skip
    status = shell.json(f"kubectl get mpijobs.v1alpha1.kubeflow.org {NAME} -o json")["status"]
    assert (status["launcherStatus"], status["workerReplicas"]) == ("Succeeded", 0)
    assert status["startTime"] <= status["completionTime"]
    limits = shell.json(f"kubectl get job {NAME}-launcher -o json")["spec"]
    assert (limits["backoffLimit"], limits["activeDeadlineSeconds"]) == (0, 200)
    shell.until("no worker is left", lambda: "worker" not in shell("kubectl get pods -o name"))
    events = shell.json("kubectl get events -o json")["items"]

    def when(reason: str, name: str) -> datetime:
        """When something happened to an object for the first time."""
        found = [each for each in events if each["reason"] == reason and each["involvedObject"]["name"] == name]
        times = [each["firstTimestamp"] or each["eventTime"] for each in found]
        return min(datetime.fromisoformat(time) for time in times)

    created = when("SuccessfulCreate", f"{NAME}-launcher")
    assert all(when("Started", f"{NAME}-worker-{index}") <= created for index in (0, 1))
    assert (created - when("Scheduled", f"{NAME}-worker-1")).total_seconds() >= 7  # its init container took 8 s


@pytest.mark.promise("B: a v1alpha1 manifest with its fields runs")
def test_numbers_that_do_not_divide_are_an_event(shell: Shell, manifest: Callable[..., str]) -> None:
    shell("kubectl apply -f -", given=manifest(processingUnits=12, processingUnitsPerNode=8))
    reason = "jsonpath='{.items[*].message}'"
    told = f"kubectl get events --field-selector reason=ValidationError -o {reason}"
    shell.until("an event", lambda: "12 units cannot be spread over nodes of 8 each" in shell(told))
    assert shell("kubectl get pods -o name") == ""
