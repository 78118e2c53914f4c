"""One job of 1000 workers on fake nodes: until all of its pods exist, in turn with mpi-operator, tuned and as it is."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any

from bench import _operators
from bench._cluster import GONE, client, create, namespace, remove, wait
from bench._cluster import tested as versions  # noqa: F401 (bench/run.py calls it)
from bench._mpijobs import PATH
from bench.harness import Row, in_turn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench._cluster import Client

WORKERS = 1000
NODES = 10
TIMES = 2
LIMIT = 600  # seconds; by default mpi-operator sends 5 requests a second, so it needs at least 200
FAKE = {"kwok.x-k8s.io/node": "fake"}


def measure() -> list[Row]:
    api = client()
    with fake_nodes(api), namespace(api, "ours") as here, namespace(api, "tuned") as there:

        def ours() -> float:
            with _operators.ours(here):
                return all_pods_exist(api, here)

        def tuned() -> float:
            with _operators.peer(there, *_operators.TUNED):
                return all_pods_exist(api, there)

        quick, others = in_turn(TIMES, ours, tuned)
    with fake_nodes(api), namespace(api, "default") as space, _operators.peer(space):
        default = [all_pods_exist(api, space)]
    return [
        Row(f"1 job x {WORKERS} workers: all pods exist", "s", quick, limit=0.7, beside=others,
            beside_what="mpi-operator tuned"),
        Row(f"1 job x {WORKERS} workers: all pods exist", "s", quick, limit=0.06, beside=default,
            beside_what="mpi-operator as it is")]


def all_pods_exist(api: Client, space: str, name: str = "large") -> float:
    """Seconds from submitting the job until the last of its pods was created, launcher included."""
    _warm(api, space)
    path = f"/api/v1/namespaces/{space}/pods"
    before = api.version(path)
    seen: set[str] = set()
    done, last = threading.Event(), [0.0]

    def watch() -> None:
        version = before
        while not done.is_set():  # the API server ends a watch that reads too slowly; a new one continues from there
            for kind, metadata in api.watch(path, version, LIMIT):
                version = metadata.get("resourceVersion", version)
                if kind == "ADDED" and metadata["name"] not in seen:
                    seen.add(metadata["name"])
                    last[0] = time.time()
                    if len(seen) == WORKERS + 1:
                        done.set()
                        return

    threading.Thread(target=watch, daemon=True).start()
    begun = time.time()
    create(api, PATH.format(space), _job(name, WORKERS))
    if not done.wait(LIMIT):
        done.set()
        raise RuntimeError(f"{len(seen)} of {WORKERS + 1} pods exist after {LIMIT} s")
    remove(api, f"{PATH.format(space)}/{name}", space)
    return last[0] - begun


def _warm(api: Client, space: str) -> None:
    """Run a job of one worker first, so that the measurement does not include the start of the operator's caches."""
    create(api, PATH.format(space), _job("warm", 1))
    path = f"/api/v1/namespaces/{space}/pods/warm-worker-0"
    wait("the first worker", lambda: api.get(path).status != GONE)
    remove(api, f"{PATH.format(space)}/warm", space)


@contextlib.contextmanager
def fake_nodes(api: Client) -> Iterator[None]:
    """Nodes that exist only as objects. Pods that tolerate them get the status Running at once, without a process."""
    capacity = {"cpu": "1000", "memory": "1000Gi", "pods": "1000"}
    paths: list[str] = []
    with _operators.kwok():
        try:
            for number in range(NODES):
                create(api, "/api/v1/nodes", {
                    "apiVersion": "v1", "kind": "Node",
                    "metadata": {"name": f"fake-{number}", "labels": {"type": "fake"}, "annotations": FAKE},
                    "spec": {"taints": [{"key": "fake", "effect": "NoSchedule"}]},
                    "status": {"capacity": capacity, "allocatable": capacity}})
                paths.append(f"/api/v1/nodes/fake-{number}")
            for path in paths:
                wait(f"{path} ready", lambda path=path: _ready(api.get(path).object))
            yield
        finally:
            for path in paths:
                api.delete(path)


def _ready(node: dict[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _job(name: str, workers: int) -> dict[str, Any]:
    spec = {"nodeSelector": {"type": "fake"}, "tolerations": [{"key": "fake", "operator": "Exists"}],
            "terminationGracePeriodSeconds": 0}
    container = {"name": "main", "image": "fake", "command": ["mpirun", "true"]}
    template = {"spec": {**spec, "containers": [container]}}
    return {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": name}, "spec": {
        "mpiReplicaSpecs": {"Launcher": {"replicas": 1, "template": template},
                            "Worker": {"replicas": workers, "template": template}}}}
