"""Elastic training with torch on the node survives one fault after the other, and never starts again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.kube.blocking import Client
from tests.systems.d_elastic.test_horovod import LONG, has_in_order, sizes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.systems.shell import Shell

pytestmark = [pytest.mark.timeout(1200)]
NAME = "faults"
LAUNCHER = "kubectl logs -l training.kubeflow.org/job-name=faults,mpi-job-role=launcher --tail=-1"
# worker-2 has a name and an address, but does not answer.
JOB = """
apiVersion: kubeflow.org/v1
kind: MPIJob
metadata: {name: faults}
spec:
  slotsPerWorker: 1
  runPolicy: {backoffLimit: 0}
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          terminationGracePeriodSeconds: 1
          containers:
          - name: main
            image: IMAGE
            imagePullPolicy: IfNotPresent
            # Short pauses for failed hosts: here they only take time.
            command: [horovodrun, -np, "2", --min-np, "1", --max-np, "4", --blacklist-cooldown-range, "2", "10",
                      --host-discovery-script, /etc/mpi/discover_hosts.sh, python, /program/train.py]
    Worker:
      replicas: 3
      template:
        spec:
          terminationGracePeriodSeconds: 1
          # Workers find a place only beside this pod.
          affinity:
            podAffinity:
              requiredDuringSchedulingIgnoredDuringExecution:
              - {labelSelector: {matchLabels: {place: room}}, topologyKey: kubernetes.io/hostname}
          volumes: [{name: program, configMap: {name: program}}]
          containers:
          - name: main
            image: IMAGE
            imagePullPolicy: IfNotPresent
            volumeMounts: [{name: program, mountPath: /program}]
            command: [sh, -c, "case $(hostname) in *-2) exec sleep infinity;; esac; exec mpiboot worker"]
"""
ROOM = """
apiVersion: v1
kind: Pod
metadata: {name: room, labels: {place: room}}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: IMAGE, imagePullPolicy: IfNotPresent, command: [sleep, infinity]}]
"""


@pytest.fixture
def training(shell: Shell, loaded: Callable[[str], str]) -> Shell:
    """A job that trains on two of its three workers; the third never answers."""
    image = loaded("horovod-torch")
    shell(f"kubectl create configmap program --from-file={Path(__file__).with_name('train.py')}")
    shell("kubectl create -f -", given=ROOM.replace("IMAGE", image))
    shell("kubectl create -f -", given=JOB.replace("IMAGE", image))
    reaches(shell, [2])
    return shell


def test_training_survives_what_happens_to_its_workers(training: Shell) -> None:
    shell = training
    evict(shell, "worker-1")
    reaches(shell, [2, 1, 2])
    kill(shell, "worker-0")
    reaches(shell, [2, 1, 2, 1, 2])
    shell("kubectl delete pod room")
    shell("kubectl patch mpijobs.v1.kubeflow.org faults --type=merge"
          """ -p '{"spec":{"mpiReplicaSpecs":{"Worker":{"replicas":4}}}}'""")
    shell.until("a worker without a place", lambda: unscheduled(shell, "worker-3"))
    listed = shell(f"kubectl exec {launcher(shell)['metadata']['name']} -- /etc/mpi/discover_hosts.sh")
    assert [line.partition(".")[0] for line in listed.splitlines()] == [f"{NAME}-worker-{index}" for index in (0, 1)]
    shell(f"kubectl exec {NAME}-worker-1 -- touch /tmp/enough")
    assert shell.ended(NAME, limit=LONG) == "Succeeded", shell.report()
    assert [each["restartCount"] for each in launcher(shell)["status"]["containerStatuses"]] == [0]
    assert "trained, at the end with 2" in shell(LAUNCHER)


def reaches(shell: Shell, wanted: list[int]) -> None:
    shell.until(f"training with {wanted}", lambda: has_in_order(sizes(shell(f"{LAUNCHER} 2>&1 || true")), wanted), LONG)


def evict(shell: Shell, worker: str) -> None:
    """As one who drains a node does."""
    name = f"{NAME}-{worker}"
    answer = Client.of(shell.cluster.kubeconfig).post(f"/api/v1/namespaces/{shell.namespace}/pods/{name}/eviction", {
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": shell.namespace}})
    assert answer.status == 201, answer.text


def kill(shell: Shell, worker: str) -> None:
    """Its processes end without a word, and its pod is gone at once."""
    shell(f"kubectl delete pod {NAME}-{worker} --grace-period=0 --force --wait=false 2>/dev/null")


def launcher(shell: Shell) -> dict[str, Any]:
    """Its pod: the only one that there ever was."""
    found: list[dict[str, Any]] = shell.json("kubectl get pods -o json -l mpi-job-role=launcher")["items"]
    pod, = found
    return pod


def unscheduled(shell: Shell, worker: str) -> bool:
    found = shell.json("kubectl get pods -o json -l mpi-job-role=worker")["items"]
    return any(each["metadata"]["name"] == f"{NAME}-{worker}" and not each["spec"].get("nodeName")
               and any(c["type"] == "PodScheduled" and c["status"] == "False"
                       for c in each["status"].get("conditions") or ()) for each in found)
