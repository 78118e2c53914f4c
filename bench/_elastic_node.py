"""The training job on the node of `make cluster`."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bench import _operators
from bench._cluster import CREATED, NODE, Client, create, ctr, exists, namespace, pods, remove, versions, wait
from bench._elastic import TORCH, Training, manifest, run

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "train"
# Workers are scheduled only on the node of this pod. Without it a new worker stays pending.
ROOM = "room"
BESIDE_ROOM = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"labelSelector": {"matchLabels": {"bench": ROOM}}, "topologyKey": "kubernetes.io/hostname"}]}}


class OnNode(Training):
    """An MPIJob. The process `output` follows its launcher's log."""

    def __init__(self, api: Client, space: str, output: subprocess.Popen[str]) -> None:
        super().__init__(NAME, output)
        self._api, self._space = api, space

    def scale(self, workers: int) -> None:
        patch = {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": workers}}}}
        answer = self._api.patch(f"{_jobs(self._space)}/{NAME}", patch)
        if answer.status != 200:
            raise RuntimeError(f"the patch: {answer.status} {answer.text[:300]}")

    def kill(self, worker: int) -> None:
        run("kill", "-KILL", str(self.pid(worker)))

    def remove(self, worker: int) -> None:
        """Evict it, as `kubectl drain` does."""
        name = f"{NAME}-worker-{worker}"
        answer = self._api.post(f"{_pods(self._space)}/{name}/eviction", {
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": self._space}})
        if answer.status != CREATED:
            raise RuntimeError(f"the eviction: {answer.status} {answer.text[:300]}")

    def cut(self, worker: int) -> None:
        """Drop all its packets: it has an address and never answers."""
        for chain in ("INPUT", "OUTPUT"):
            self._drop("-I", worker, chain)

    def connect(self, worker: int) -> None:
        for chain in ("INPUT", "OUTPUT"):
            self._drop("-D", worker, chain)

    def pid(self, worker: int) -> int:
        wanted = [f"labels.\"io.kubernetes.{key}\"=={text}" for key, text in (
            ("pod.namespace", self._space), ("pod.name", f"{NAME}-worker-{worker}"), ("container.name", "main"))]
        found = ctr(NODE, "containers", "ls", "-q", ",".join(wanted)).stdout.split()
        tasks = (line.split() for line in ctr(NODE, "tasks", "ls").stdout.splitlines())
        return next((int(pid) for task, pid, state in tasks if task in found and state == "RUNNING"), 0)

    def leave_no_room(self) -> None:
        """From now on no worker can be scheduled."""
        self._api.delete(f"{_pods(self._space)}/{ROOM}")
        wait("no room", lambda: not exists(self._api, f"{_pods(self._space)}/{ROOM}"))

    def _drop(self, how: str, worker: int, chain: str) -> None:
        run("nsenter", "-t", str(self.pid(worker)), "-n", "iptables", "-w", how, chain, "-j", "DROP")


@contextmanager
def training(api: Client, image: str, workers: int, script: str = TORCH) -> Iterator[OnNode]:
    """A job that trains on all of its workers, in its own namespace and with its own operator."""
    with namespace(api, "elastic") as space, _operators.ours(space):
        main = {"name": "main", "image": image, "imagePullPolicy": "IfNotPresent", "command": ["sleep", "infinity"]}
        create(api, _pods(space), {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": ROOM, "labels": {"bench": ROOM}},
            "spec": {"terminationGracePeriodSeconds": 0, "containers": [main]}})
        job = manifest(NAME, image, workers, script, {"affinity": BESIDE_ROOM})
        create(api, _jobs(space), job)
        wait("the launcher", lambda: _launcher(api, space))
        command = [versions.program("kubectl"), "--kubeconfig", str(NODE.kubeconfig), "-n", space, "logs", "--follow",
                   _launcher(api, space)]  # fmt: skip
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            found = OnNode(api, space, process)
            found.until(workers, 0.0, steps=10)
            yield found
        finally:
            process.terminate()
            process.wait(60)
            api.delete(f"{_pods(space)}/{ROOM}")
            remove(api, f"{_jobs(space)}/{NAME}", space)


def _launcher(api: Client, space: str) -> str:
    """The name of the launcher's pod once it runs."""
    running = (each["metadata"]["name"] for each in pods(api, space) if each["status"].get("phase") == "Running")
    return next((name for name in running if "launcher" in name), "")


def _jobs(space: str) -> str:
    return f"/apis/kubeflow.org/v1/namespaces/{space}/mpijobs"


def _pods(space: str) -> str:
    return f"/api/v1/namespaces/{space}/pods"
