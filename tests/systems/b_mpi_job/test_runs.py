"""What the prototypes generate is what a cluster takes; and, where there is no GPU, it runs and computes there."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.systems.shell import Shell

    Loaded = Callable[[str], str]

# With all that this cluster cannot run: it has no GPU.
TAKEN = (
    "mpi-job-simple bench --gpus 16",
    "mpi-job-simple bench --gpus 16 --version v1alpha1",
    "mpi-job-custom bench --replicas 2 --gpusPerReplica 4 --pvcName data --volumeMountPath /data",
    "mpi-operator op -n $NAMESPACE",
    ("openmpi hello -n $NAMESPACE --secret s --gpu 2 --workers 2 --useHostNetwork true --runAsUser 1 --runAsGroup 2 "
     "--supplementalGroups 3 --nodeSelector a=b --memory 1Gi --imagePullSecrets p"),
)


def ranks(shell: Shell, job: str) -> Counter[str]:
    """How many ranks ran on each worker, of a job that found pi."""
    log = shell(f"kubectl logs -l training.kubeflow.org/job-name={job},training.kubeflow.org/job-role=launcher")
    assert "pi is 3.14159265" in log, log
    return Counter(re.findall(r"^rank \d+ of \d+ on (\S+)$", log, re.MULTILINE))


@pytest.mark.promise("B: what the prototypes generate runs on a cluster")
@pytest.mark.promise("B: the launcher starts only after all workers are ready")
def test_a_custom_job_computes_with_a_rank_on_each_worker(shell: Shell, loaded: Loaded) -> None:
    loaded("openmpi")
    shell("mpiboot generate mpi-job-custom bench --replicas 2 --gpusPerReplica 0 | kubectl apply -f -")
    assert shell.ended("bench") == "Succeeded", shell.report()
    assert ranks(shell, "bench") == {"bench-worker-0": 1, "bench-worker-1": 1}
    log = shell("kubectl logs -l training.kubeflow.org/job-role=launcher")
    assert log.index("2 of 2 workers ready") < log.index("rank 0")


@pytest.mark.promise("B: what the prototypes generate runs on a cluster")
@pytest.mark.promise("B: command and args split on commas, and null means absent")
@pytest.mark.parametrize("version", ["v2beta1", "v1alpha1"])
def test_a_simple_job_runs_its_own_command(shell: Shell, loaded: Loaded, version: str) -> None:
    image = loaded("openmpi")
    shell(f"mpiboot generate mpi-job-simple bench --gpus 0 --image {image} --version {version} "
          "--command mpirun,python3 --args=-m,mpiboot.demo,100000 | kubectl apply -f -")
    assert shell.ended("bench") == "Succeeded", shell.report()
    assert ranks(shell, "bench") == {"bench-worker-0": 1}


@pytest.mark.promise("B: what the prototypes generate runs on a cluster")
def test_a_volume_claim_is_mounted_in_launcher_and_workers(shell: Shell, loaded: Loaded) -> None:
    loaded("openmpi")
    volume = {
        "volume": "{apiVersion: v1, kind: PersistentVolume, metadata: {name: $NAMESPACE}, spec: {accessModes: "
        "[ReadWriteMany], capacity: {storage: 1Mi}, claimRef: {name: data, namespace: $NAMESPACE}, "
        "storageClassName: none, hostPath: {path: /tmp/$NAMESPACE, type: DirectoryOrCreate}}}",
        "claim": "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: "
        "[ReadWriteMany], storageClassName: none, resources: {requests: {storage: 1Mi}}}}",
    }  # fmt: skip
    try:
        for text in volume.values():
            shell(f'echo "{text}" | kubectl apply -f -')
        shell("mpiboot generate mpi-job-custom bench --replicas 2 --gpusPerReplica 0 --pvcName data --volumeMountPath "
              "/data --command mpirun,sh,-c --args='grep -o \" /data \" /proc/mounts' | kubectl apply -f -")
        assert shell.ended("bench") == "Succeeded", shell.report()
        assert shell("kubectl logs -l training.kubeflow.org/job-role=launcher").count(" /data ") == 2
    finally:
        shell("kubectl delete pvc data --ignore-not-found --wait=false; kubectl delete pv $NAMESPACE --wait=false;"
              "rm -rf /tmp/$NAMESPACE")


@pytest.mark.promise("B: what the prototypes generate runs on a cluster")
@pytest.mark.parametrize("command", TAKEN)
def test_the_api_server_takes_it_field_by_field(shell: Shell, command: str) -> None:
    """Unknown fields are errors here, which a plain apply would only warn of."""
    shell(f"mpiboot generate {command} | kubectl apply --server-side --force-conflicts --dry-run=server "
          "--validate=strict -f -")


@pytest.mark.promise("B: kubectlDeliveryImage names the image that brings what a user's image lacks")
def test_the_delivery_image_reaches_the_operator(shell: Shell) -> None:
    printed = shell("mpiboot generate mpi-operator op --kubectlDeliveryImage registry.example/delivery:1")
    assert "    - --delivery-image\n" in printed.replace("          - ", "    - "), printed[-1500:]
    assert "registry.example/delivery:1" in printed
