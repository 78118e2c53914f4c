"""The node of `make cluster` for the benchmarks: namespaces, pods, and logs with times."""

from __future__ import annotations

import contextlib
import sys
import time
import uuid
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.harness import Unavailable
from mpiboot.controller.install import crd

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from cluster import images, node, ports, versions
from cluster.containerd import ctr
from cluster.home import NODE

from mpiboot.kube.blocking import Client

# The other benchmarks import these from here, so that only this module extends sys.path.
__all__ = ["CREATED", "GONE", "NODE", "Client", "client", "create", "ctr", "exists", "log", "namespace", "node",
           "pods", "ports", "remove", "tested", "versions", "wait"]

if TYPE_CHECKING:
    from collections.abc import Iterator

SLOWEST = 300.0  # seconds for anything; a sample that takes longer is a fault, not a measurement
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OK, CREATED, GONE = 200, 201, 404


def client(*tags: str) -> Client:
    """A client of the running node, with the images and the CRD installed there. Raises Unavailable without a node."""
    if not node.running(NODE):
        raise Unavailable("a Kubernetes node; get it with: make cluster")
    if missing := versions.FAKE_NODES.missing() + versions.PEER.missing():
        raise Unavailable(f"{' and '.join(missing)}; get them with: .venv/bin/python tools/cluster build bench")
    for tag in tags:
        images.load(tag)
    api = Client.of(NODE.kubeconfig)
    if not exists(api, f"{CRDS}/{crd.NAME}"):
        create(api, CRDS, crd.crd())
    wait("the CRD to be served", lambda: exists(api, f"/apis/{crd.GROUP}/v1/{crd.PLURAL}"))
    return api


def tested() -> dict[str, str]:
    """The versions that the numbers depend on."""
    return {"kubernetes": versions.KUBERNETES, "mpi-operator": versions.PEER.version,
            "kwok": versions.FAKE_NODES.version}


@contextlib.contextmanager
def namespace(api: Client, name: str) -> Iterator[str]:
    """A namespace for the length of a `with` block."""
    unique = f"bench-{name}-{uuid.uuid4().hex[:6]}"
    create(api, "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": unique}})
    account = f"/api/v1/namespaces/{unique}/serviceaccounts/default"
    wait(account, lambda: exists(api, account))
    try:
        yield unique
    finally:
        api.delete(f"/api/v1/namespaces/{unique}")


def create(api: Client, path: str, content: dict[str, Any]) -> dict[str, Any]:
    """The object as it was created."""
    answer = api.post(path, content)
    if answer.status != CREATED:
        raise RuntimeError(f"POST {path}: {answer.status} {answer.text[:500]}")
    return answer.object


def exists(api: Client, path: str) -> bool:
    return api.get(path).status == OK


def pods(api: Client, space: str) -> list[dict[str, Any]]:
    answer = api.get(f"/api/v1/namespaces/{space}/pods")
    if answer.status != OK:
        raise RuntimeError(f"the pods of {space}: {answer.status} {answer.text[:300]}")
    found: list[dict[str, Any]] = answer.object["items"]
    return found


def remove(api: Client, path: str, space: str) -> None:
    """Delete an object and wait until the namespace has no pod, so that the node is quiet for the next sample."""
    api.delete(path)
    wait(f"the end of {path}", lambda: not exists(api, path) and not pods(api, space))


def log(api: Client, space: str, pod: str, container: str) -> list[tuple[float, str]]:
    """What a container printed so far: each line with the time at which the node received it."""
    path = f"/api/v1/namespaces/{space}/pods/{pod}/log?timestamps=true&container={container}"
    lines = [line.partition(" ") for line in api.get(path).text.splitlines()]
    # datetime reads at most six digits after the point; Kubernetes writes nine.
    return [(datetime.fromisoformat(f"{when[:26]}+00:00").timestamp(), text) for when, _, text in lines]


def wait(what: str, condition: Any, limit: float = SLOWEST, pace: float = 0.1) -> None:  # noqa: ANN401 (any truth)
    """Return once `condition()` is true."""
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {limit:.0f} s")
        time.sleep(pace)
