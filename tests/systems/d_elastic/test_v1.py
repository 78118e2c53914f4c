"""kubeflow.org/v1 on the node: its defaults, its labels, and workers that are evicted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.systems.shell import Shell

NAME = "v1-job"


def job(image: str, script: str, *, workers: int = 2, pod: dict[str, Any] | None = None, **container: Any) -> str:  # noqa: ANN401
    """A v1 job that says nothing but what it must. `pod` and `container` are more fields of the workers."""

    def replica(count: int, spec: dict[str, Any], **more: Any) -> dict[str, Any]:  # noqa: ANN401
        main = {"name": "main", "image": image, "imagePullPolicy": "IfNotPresent", **more}
        return {"replicas": count, "template": {"spec": {"containers": [main], **spec}}}

    launcher, worker = replica(1, {}, command=["sh", "-c", script]), replica(workers, pod or {}, **container)
    spec = {"mpiReplicaSpecs": {"Launcher": launcher, "Worker": worker}}
    return json.dumps({"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "metadata": {"name": NAME}, "spec": spec})


@pytest.mark.promise("D: fields left out have v1's defaults")
@pytest.mark.promise("D: pods carry group-name, mpi-job-name and mpi-job-role, and workers replica-index")
def test_defaults_and_labels(shell: Shell, loaded: Callable[[str], str]) -> None:
    shell("kubectl create -f -", given=job(loaded("openmpi"), "mpirun sh -c 'echo rank on $(hostname)'"))
    assert shell.ended(NAME) == "Succeeded", shell.report()
    mine = f"group-name=kubeflow.org,mpi-job-name={NAME}"
    output = shell(f"kubectl logs -l {mine},mpi-job-role=launcher --tail=-1")
    ranks = sorted(line for line in output.splitlines() if line.startswith("rank on "))
    assert ranks == [f"rank on {NAME}-worker-0", f"rank on {NAME}-worker-1"]  # slotsPerWorker: 1
    for index in (0, 1):  # cleanPodPolicy: None
        found = shell(f"kubectl get pods -l {mine},mpi-job-role=worker,replica-index={index} -o name")
        assert found == f"pod/{NAME}-worker-{index}\n"
    launcher = shell.json(f"kubectl get pods -l {mine},mpi-job-role=launcher -o json")["items"]
    assert [pod["spec"]["restartPolicy"] for pod in launcher] == ["Never"]
    found = shell.json(f"kubectl get mpijobs.v1.kubeflow.org {NAME} -o json")
    assert found["spec"]["dialect"] == "v1"
    assert found["status"]["replicaStatuses"] == {"Launcher": {"succeeded": 1}, "Worker": {"active": 2}}


@pytest.mark.promise("D: evicted workers are reported as MPIJobEvicted with their number")
def test_evicted_workers_are_an_event(shell: Shell, loaded: Callable[[str], str]) -> None:
    volume = {"volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "1Mi"}}]}
    text = job(loaded("openmpi"), "mpirun sleep 600", pod=volume,
               volumeMounts=[{"name": "scratch", "mountPath": "/scratch"}])  # fmt: skip
    shell("kubectl create -f -", given=text)
    shell.until("it runs", lambda: "Running" in shell(
        f"kubectl get mpijob {NAME} -o jsonpath='{{.status.conditions[*].type}}'"))  # fmt: skip
    # The kubelet evicts a pod that fills what it was given.
    shell(f"kubectl exec {NAME}-worker-1 -- dd if=/dev/zero of=/scratch/full bs=1M count=8 2>/dev/null")
    told = "kubectl get events --field-selector reason=MPIJobEvicted -o jsonpath='{.items[*].message}'"
    shell.until("an event", lambda: shell(told))
    assert "1/2 workers are evicted" in shell(told)
