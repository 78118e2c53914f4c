"""Images without SSH: the job names what they lack at once, or the operator brings it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.conftest import REPOSITORY
from tests.foreign.build import build

if TYPE_CHECKING:
    from collections.abc import Callable

    import docker
    from cluster.fixtures import Cluster

    from tests.systems.shell import Shell

DELIVERY = "mpiboot/delivery:latest"
OPERATOR_FLAGS = ("--delivery-image", DELIVERY)
NAME = "old-times"

# As in the first operator's guide: root, no mount path, no -np, nothing said to the workers.
JOB = """
apiVersion: kubeflow.org/VERSION
kind: MPIJob
metadata: {name: old-times, annotations: {ANNOTATIONS}}
spec:
  slotsPerWorker: 2
  cleanPodPolicy: None
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          terminationGracePeriodSeconds: 1
          containers:
          - {name: main, image: IMAGE, imagePullPolicy: IfNotPresent, command: [sh, -c, COMMAND]}
    Worker:
      replicas: 2
      template:
        spec:
          terminationGracePeriodSeconds: 1
          containers:
          - {name: main, image: IMAGE, imagePullPolicy: IfNotPresent}
"""
RANKS = "'mpirun --allow-run-as-root sh -c \"echo rank on \\$(hostname): \\$GREETING\"'"
# What mpirun does, where there is none.
LOGINS = """'for host in $(cut -d" " -f1 /etc/mpi/hostfile); do
  $PRTE_MCA_plm_ssh_agent $host "echo \\$(id -u) at \\$(hostname) says \\$GREETING"; done'"""


@pytest.fixture(scope="module")
def without_ssh(docker_engine: docker.DockerClient, cluster: Cluster, image: Callable[[str], str]) -> str:
    """An image that holds Open MPI and no SSH, and on the node beside it what is brought to it."""
    cluster.load(image("delivery"))
    return cluster.load(build(docker_engine, REPOSITORY / "tests" / "foreign" / "nossh"))


def job(image: str, *, version: str = "v1alpha2", command: str = RANKS, annotations: str = "") -> str:
    words = {"IMAGE": image, "VERSION": version, "COMMAND": command, "ANNOTATIONS": annotations}
    return re.sub("|".join(words), lambda found: words[found[0]], JOB)


def printed(shell: Shell) -> list[str]:
    """What the launcher's program printed, without the lines of the script that waits before it."""
    lines = shell(f"kubectl logs -l mpi_job_name={NAME},mpi_role_type=launcher --tail=-1").splitlines()
    return [line for line in lines if not line.startswith("mpiboot: ")]


@pytest.mark.promise("A: an image without sshd does not hang: it works, or fails at once with the fix")
@pytest.mark.promise("B: kubectlDeliveryImage names the image that brings what a user's image lacks")
def test_an_old_job_runs_unchanged_in_an_image_without_ssh(shell: Shell, without_ssh: str) -> None:
    shell("kubectl apply -f -", given=job(without_ssh))
    assert shell.ended(NAME) == "Succeeded", shell.report()
    ranks = sorted(line for line in printed(shell) if line.startswith("rank "))
    assert ranks == [f"rank on {NAME}-worker-{index}: it's here" for index in (0, 0, 1, 1)]


@pytest.mark.promise("A: an image without sshd does not hang: it works, or fails at once with the fix")
def test_without_delivery_such_a_job_fails_at_once_with_the_fix(shell: Shell, without_ssh: str) -> None:
    shell("kubectl apply -f -", given=job(without_ssh, annotations='mpiboot.dev/ssh: image'))
    assert shell.ended(NAME) == "Failed", shell.report()
    fix = f"mpiboot images build openmpi --base {without_ssh} --tag TAG"
    status = shell.json(f"kubectl get mpijob {NAME} -o json")["status"]
    assert "has no /usr/sbin/sshd" in status["reason"]
    assert fix in status["reason"]
    assert fix in shell("kubectl get events")
    assert fix in shell(f"kubectl logs {NAME}-worker-0")
    shell.until("the end of the launcher that waited",
                lambda: not shell(f"kubectl get pods -l mpi_job_name={NAME},mpi_role_type=launcher -o name"))


@pytest.mark.promise("A: an image without sshd does not hang: it works, or fails at once with the fix")
@pytest.mark.parametrize("user", [0, 1000, 123456])
def test_a_bare_image_serves_any_user(
        shell: Shell, docker_engine: docker.DockerClient, cluster: Cluster, without_ssh: str, user: int) -> None:
    """No library, no account, no distribution: a shell is all there is. mpirun is not there either, so the launcher
    calls what mpirun would call."""
    assert without_ssh
    bare = cluster.load(build(docker_engine, REPOSITORY / "tests" / "foreign" / "bare", base=DELIVERY))
    text = job(bare, version="v2beta1", command=LOGINS, annotations="mpiboot.dev/ssh: delivered")
    text = text.replace("  cleanPodPolicy: None\n", "  sshAuthMountPath: /keys\n")
    place = "          containers:"
    text = text.replace(place, f"          securityContext: {{runAsUser: {user}}}\n{place}")
    shell("kubectl apply -f -", given=text)
    assert shell.ended(NAME) == "Succeeded", shell.report()
    assert printed(shell) == [f"{user} at {NAME}-worker-{index} says it's here" for index in (0, 1)]
