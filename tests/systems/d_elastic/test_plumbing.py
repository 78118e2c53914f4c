"""System D's manifest as its users have it, with a horovodrun that only polls; the running job grows and shrinks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from tests import elastic
from tests.foreign.build import build

if TYPE_CHECKING:
    from collections.abc import Callable

    import docker
    from cluster.fixtures import Cluster

    from tests.systems.shell import Shell

HERE = Path(__file__).parent
NAME = "tensorflow-mnist-elastic"
LAUNCHER = "kubectl logs -l training.kubeflow.org/job-name=tensorflow-mnist-elastic,mpi-job-role=launcher --tail=-1"
# The kubelet by itself looks at a mounted ConfigMap every 60 to 90 s. The promised 3 s: bench/elastic_discovery.py.
SOON = 30.0
# A name that was asked for before the cluster's DNS had it: the question then goes on to servers that may not answer.
UNTIL_KNOWN = 120.0


@pytest.fixture
def their_image(docker_engine: docker.DockerClient, image: Callable[[str], str], cluster: Cluster) -> str:
    """An image that the operator does not know by its name: it holds the launcher's pod back, and patches files."""
    return cluster.load(build(docker_engine, HERE, base=image("openmpi"), tag="d-elastic"))


def manifest(image: str, program: list[str] | None = None) -> str:
    """The manifest with an image that the node has; with `program`, that in place of the horovodrun."""
    text = (HERE / "mpijob.yaml").read_text().replace("IMAGE", image)
    job = yaml.safe_load(text)
    for replica in job["spec"]["mpiReplicaSpecs"].values():
        replica["template"]["spec"] |= {"terminationGracePeriodSeconds": 1}
        replica["template"]["spec"]["containers"][0]["imagePullPolicy"] = "IfNotPresent"
    if program:
        container = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
        container |= {"command": program, "args": []}
    return yaml.safe_dump(job)


def lists(shell: Shell, count: int, times: int = 1) -> None:
    """Wait until the launcher has been shown these hosts."""
    hosts = "".join(f"{NAME}-worker-{i}.{NAME}.{shell.namespace}.svc:1 " for i in range(count))
    shell.until(f"{count} hosts", lambda: shell(LAUNCHER).count(f"hosts: {hosts}\n") >= times, SOON)


def patched(shell: Shell, workers: int) -> None:
    patch = f'{{"spec":{{"mpiReplicaSpecs":{{"Worker":{{"replicas":{workers}}}}}}}}}'
    shell(f"kubectl patch mpijobs.v1.kubeflow.org {NAME} --type=merge -p '{patch}'")


def scaled(shell: Shell, workers: int) -> None:
    assert f"-> {workers} workers" in shell(f"mpiboot scale --engine kubernetes {NAME} {workers}")


def grows_and_shrinks(shell: Shell, resize: Callable[[Shell, int], None]) -> None:
    pods = "kubectl get pods -o json -l mpi-job-role=launcher"
    shell.until("the first hosts", lambda: "hosts: " in shell(f"{LAUNCHER} 2>/dev/null || true"))
    lists(shell, 2)
    before, = shell.json(pods)["items"]
    for count in (3, 1, 2):
        resize(shell, count)
        lists(shell, count, 2 if count == 2 else 1)
        if count == 3:  # a name that is gone again cannot be tried again
            shell.until("a rank on the third", lambda: f"rank on {NAME}-worker-2\n" in shell(LAUNCHER), UNTIL_KNOWN)
    assert shell.ended(NAME) == "Succeeded"
    after, = shell.json(pods)["items"]
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert [each["restartCount"] for each in after["status"]["containerStatuses"]] == [0]
    output = shell(LAUNCHER)
    assert "no rank on" not in output
    ranks = [line for line in output.splitlines() if line.startswith("rank on")]
    # The job may have begun with either of the two.
    assert sorted(ranks[:3]) == [f"rank on {NAME}-worker-{index}" for index in range(3)]


@pytest.mark.promise("D: a horovodrun job with the discovery script runs")
@pytest.mark.promise("D: raising Worker.replicas grows the running job without a restart")
@pytest.mark.promise("D: lowering Worker.replicas shrinks the running job without a restart")
@pytest.mark.promise("D: discover_hosts.sh prints host:slots for each worker that can take a rank, sorted")
@pytest.mark.promise("D: the discovery follows a change within 3 s")
@pytest.mark.promise("D: lowering removes the highest indexes, raising adds the missing ones")
def test_the_manifest_with_an_image_of_a_users(shell: Shell, their_image: str) -> None:
    shell("kubectl create -f -", given=manifest(their_image))
    grows_and_shrinks(shell, patched)


@pytest.mark.promise("D: raising Worker.replicas grows the running job without a restart")
@pytest.mark.promise("D: the discovery follows a change within 3 s")
def test_the_manifest_with_an_image_of_ours_and_mpiboot_scale(shell: Shell, loaded: Callable[[str], str]) -> None:
    shell("kubectl create -f -", given=manifest(loaded("openmpi"), elastic.command()))
    grows_and_shrinks(shell, scaled)
    assert "mpiboot: 2 -> 3 workers: + worker-2" in shell(LAUNCHER)


def test_a_worker_that_is_killed_is_replaced(shell: Shell, loaded: Callable[[str], str]) -> None:
    shell("kubectl create -f -", given=manifest(loaded("openmpi"), elastic.command(" 2 1 2")))
    shell.until("the first hosts", lambda: "hosts: " in shell(f"{LAUNCHER} 2>/dev/null || true"))
    lists(shell, 2)
    shell(f"kubectl delete pod {NAME}-worker-1 --grace-period=1 --wait=false")
    assert shell.ended(NAME) == "Succeeded"


def test_a_size_that_the_job_cannot_have_is_one_line(shell: Shell, loaded: Callable[[str], str]) -> None:
    shell("kubectl create -f -", given=manifest(loaded("openmpi"), elastic.command()))
    said = shell(f"mpiboot scale --engine kubernetes {NAME} 4", fails=True)
    assert said == f"mpiboot: {NAME}: 4 is too many: the job takes at most 3 (--max-np 3, 1 slot a worker)\n"
