"""The operator reports a worker that the kubelet evicts, with the number of such workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.systems.shell import Shell

# The second worker fills more of a volume than it may. The launcher runs only until the event is there.
JOB = """
apiVersion: kubeflow.org/v1
kind: MPIJob
metadata: {name: greedy}
spec:
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          terminationGracePeriodSeconds: 1
          containers:
          - {name: main, image: IMAGE, imagePullPolicy: IfNotPresent, command: [sleep, infinity]}
    Worker:
      replicas: 2
      template:
        spec:
          terminationGracePeriodSeconds: 1
          volumes: [{name: scratch, emptyDir: {sizeLimit: 1Mi}}]
          containers:
          - name: main
            image: IMAGE
            imagePullPolicy: IfNotPresent
            volumeMounts: [{name: scratch, mountPath: /scratch}]
            command: [sh, -c, "case $(hostname) in *-1) head -c 9M /dev/zero >/scratch/much;; esac; mpiboot worker"]
"""


@pytest.mark.promise("D: evicted workers are reported as MPIJobEvicted with their number")
def test_an_evicted_worker_is_an_event(shell: Shell, loaded: Callable[[str], str]) -> None:
    shell("kubectl create -f -", given=JOB.replace("IMAGE", loaded("openmpi")))
    evicted = "kubectl get events --field-selector reason=MPIJobEvicted,involvedObject.name=greedy -o json"
    shell.until("the event", lambda: shell.json(evicted)["items"])
    assert shell.json(evicted)["items"][0]["message"] == "1/2 workers are evicted"
