"""A running operator and a cluster without kubelets: tests play the kubelet and the Job controller."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests

from mpiboot.kube import blocking
from tests.operators import WATCHING_ALL, resting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cluster.fixtures import Kubernetes

REPOSITORY = Path(__file__).resolve().parents[2]
PATIENCE = 90.0  # seconds; only a test that fails waits so long

Object = dict[str, Any]

MERGE = "application/merge-patch+json"


def eventually(what: str, look: Callable[[], Any], patience: float = PATIENCE) -> Any:  # noqa: ANN401
    """What `look` returned when it was true for the first time."""
    deadline = time.monotonic() + patience
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            pytest.fail(f"{what}: not within {patience:.0f} s; last: {found!r}", pytrace=False)
        time.sleep(0.05)


def holds(look: Callable[[], Any], seconds: float) -> None:
    """Make sure that it stays true for a while."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert look()
        time.sleep(0.1)


class Client(blocking.Client):
    """The administrator's client, as tests use it."""

    def do(self, method: str, path: str, body: object = None, form: str = "application/json") -> Object:
        """The object in the answer; a refusal fails the test."""
        answer = self.ask(method, path, body, form)
        assert answer.ok, f"{method} {path}: {answer.status} {answer.text[:500]}"
        return answer.object


PLURALS = {
    "Pod": "api/v1/namespaces/{}/pods",
    "Service": "api/v1/namespaces/{}/services",
    "ConfigMap": "api/v1/namespaces/{}/configmaps",
    "Secret": "api/v1/namespaces/{}/secrets",
    "Event": "api/v1/namespaces/{}/events",
    "EndpointSlice": "apis/discovery.k8s.io/v1/namespaces/{}/endpointslices",
    "Job": "apis/batch/v1/namespaces/{}/jobs",
    "MPIJob": "apis/kubeflow.org/v2beta1/namespaces/{}/mpijobs",
}


@dataclass(frozen=True)
class World:
    """One namespace. The methods do what a user, a kubelet and a Job controller do."""

    client: Client
    namespace: str

    @classmethod
    def new(cls, client: Client) -> World:
        name = f"test-{uuid.uuid4().hex[:8]}"
        client.do("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        return cls(client, name)

    def path(self, kind: str, name: str = "", sub: str = "") -> str:
        return "/" + "/".join(part for part in (PLURALS[kind].format(self.namespace), name, sub) if part)

    def get(self, kind: str, name: str) -> Object | None:
        answer = self.client.ask("GET", self.path(kind, name))
        return None if answer.status == 404 else answer.object

    def all(self, kind: str) -> list[Object]:
        found: list[Object] = self.client.do("GET", self.path(kind))["items"]
        return found

    def create(self, kind: str, manifest: Object) -> Object:
        return self.client.do("POST", self.path(kind), manifest)

    def patch(self, kind: str, name: str, patch: Object, sub: str = "") -> Object:
        return self.client.do("PATCH", self.path(kind, name, sub), patch, MERGE)

    def replace(self, kind: str, found: Object) -> Object:
        """As Go clients update: with the version that was read, so that a write in between is refused."""
        return self.client.do("PUT", self.path(kind, found["metadata"]["name"]), found)

    def delete(self, kind: str, name: str) -> None:
        # A Job's default is to wait for a garbage collector, of which there is none.
        self.client.do("DELETE", self.path(kind, name), {"propagationPolicy": "Background"})

    # A user.

    def submit(self, **changes: Any) -> Object:  # noqa: ANN401
        return self.create("MPIJob", mpi_job(**changes))

    def job(self, name: str = "job") -> Object:
        found = self.get("MPIJob", name)
        assert found
        return found

    def status(self, name: str = "job") -> Object:
        found: Object = self.job(name).get("status") or {}
        return found

    def condition(self, kind: str, name: str = "job") -> Object:
        """The condition, empty if there is none."""
        return next((each for each in self.status(name).get("conditions", ()) if each["type"] == kind), {})

    def workers(self, name: str = "job") -> list[Object]:
        """The workers that are not being deleted, by index."""
        pods = [pod for pod in self.all("Pod") if pod["metadata"]["name"].startswith(f"{name}-worker-")]
        alive = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        return sorted(alive, key=lambda pod: int(pod["metadata"]["name"].rpartition("-")[2]))

    def launcher(self, name: str = "job") -> Object | None:
        return self.get("Job", f"{name}-launcher")

    def started(self, workers: int = 2, name: str = "job") -> Object:
        """The launcher's Job, once all that a job starts with is there."""
        eventually("workers", lambda: len(self.workers(name)) == workers)
        found: Object = eventually("the launcher's Job", lambda: self.launcher(name))
        return found

    def events(self, reason: str) -> list[Object]:
        return [event for event in self.all("Event") if event["reason"] == reason]

    def said(self, reason: str) -> Object:
        """Wait for the event of this reason."""
        found: Object = eventually(f"event {reason}", lambda: self.events(reason))[0]
        return found

    def replicas(self, wanted: Object, name: str = "job") -> None:
        """Wait for these replicaStatuses, exactly."""
        eventually(f"replicaStatuses {wanted}", lambda: self.status(name).get("replicaStatuses") == wanted)

    # A kubelet.

    def phase(self, pod: Object, phase: str, **status: Any) -> None:  # noqa: ANN401
        self.patch("Pod", pod["metadata"]["name"], {"status": {"phase": phase, **status}}, "status")
        if {"type": "Ready", "status": "True"} in status.get("conditions", ()):
            self.named(pod)

    def named(self, pod: Object) -> None:
        """Create the EndpointSlice that gives the pod a name in DNS."""
        labels = {"kubernetes.io/service-name": pod["spec"]["subdomain"]}
        endpoint = {"addresses": ["10.9.8.7"], "hostname": pod["spec"]["hostname"]}
        self.create("EndpointSlice", {"metadata": {"generateName": "names-", "labels": labels},
                                      "addressType": "IPv4", "endpoints": [endpoint]})  # fmt: skip

    def run_workers(self, name: str = "job", *, ready: bool = False) -> None:
        for pod in self.workers(name):
            conditions = {"conditions": [{"type": "Ready", "status": "True"}]} if ready else {}
            self.phase(pod, "Running", **conditions)

    # The Job controller.

    def launcher_pod(self, name: str = "job") -> Object:
        """A pod of the launcher's Job, as it would be made now."""
        job = self.launcher(name)
        assert job
        template = job["spec"]["template"]
        labels = {**template["metadata"]["labels"], **job["spec"]["selector"]["matchLabels"]}
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"],
                 "uid": job["metadata"]["uid"], "controller": True}  # fmt: skip
        metadata = {**template["metadata"], "labels": labels, "ownerReferences": [owner]}
        metadata["generateName"] = f"{name}-launcher-"
        return self.create("Pod", {"metadata": metadata, "spec": template["spec"]})

    def launcher_ends(self, outcome: str, name: str = "job", *, failed: int = 0, **condition: str) -> None:
        first = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}[outcome]
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        types = [{"type": kind, "status": "True", **condition} for kind in (first, outcome)]
        status: Object = {"conditions": types, "startTime": now, "failed": failed}
        if outcome == "Complete":
            status |= {"succeeded": 1, "completionTime": now}
        self.patch("Job", f"{name}-launcher", {"status": status}, "status")


def mpi_job(
    name: str = "job",
    workers: int | None = 2,
    policy: Object | None = None,
    image: str = "mpi-image",
    **spec: Any,  # noqa: ANN401
) -> Object:
    """A manifest of a job with foreign images."""
    template = {"spec": {"containers": [{"name": "main", "image": image}]}}
    replicas: Object = {"Launcher": {"template": template}}
    if workers is not None:
        replicas["Worker"] = {"replicas": workers, "template": template}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {"runPolicy": {"cleanPodPolicy": "Running", **(policy or {})}, "mpiReplicaSpecs": replicas, **spec},
    }


@pytest.fixture(scope="session")
def client(api_server: Kubernetes) -> Iterator[Client]:
    """The administrator of an API server that knows MPIJobs."""
    api_server.kubectl("apply", "--server-side", "-f", str(REPOSITORY / "deploy" / "crd.yaml"))
    client = Client.of(api_server.kubeconfig)
    path = "/apis/kubeflow.org/v2beta1/mpijobs"
    eventually("the MPIJobs' API", lambda: client.ask("GET", path).ok)
    yield client
    client.close()


@dataclass
class Operator:
    """An operator process. Its log goes to the test's output."""

    process: subprocess.Popen[bytes]
    monitoring: str

    def stop(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def metric(self, name: str) -> float:
        lines = requests.get(f"{self.monitoring}/metrics", timeout=PATIENCE).text.splitlines()
        return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} "))


@pytest.fixture(scope="session")
def start_operator(api_server: Kubernetes, client: Client) -> Iterator[Callable[..., Operator]]:  # noqa: ARG001 (the CRD)
    """Starts operators: `start_operator("--flag", "value")` returns when it watches and leads."""
    running: list[subprocess.Popen[bytes]] = []

    def start(*flags: str, ready: bool = True) -> Operator:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        usual = [f"--kubeconfig={api_server.kubeconfig}", "--listen=127.0.0.1", f"--monitoring-port={port}",
                 "--checkin-port=0", "--log-format=text"]  # fmt: skip
        argv = [sys.executable, "-m", "mpiboot", "operator", *usual, *flags]
        environment = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}
        process = subprocess.Popen(argv, env=environment)
        running.append(process)
        operator = Operator(process, f"http://127.0.0.1:{port}")
        if ready:
            eventually("an operator that leads", lambda: _leads(operator))
        return operator

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
            process.wait()


def _leads(operator: Operator) -> bool:
    assert operator.process.poll() is None, f"the operator ended with {operator.process.returncode}"
    try:
        ready = requests.get(f"{operator.monitoring}/readyz", timeout=PATIENCE).ok
        return ready and operator.metric("mpi_operator_is_leader") == 1
    except requests.ConnectionError:
        return False


@pytest.fixture(scope="session")
def operator(start_operator: Callable[..., Operator]) -> Operator:
    """The operator of most tests: one for all of them."""
    started = start_operator("--no-leader-election")
    WATCHING_ALL.append(started.process)
    return started


@pytest.fixture
def unwatched() -> Iterator[None]:
    """Pause the operator of most tests, which watches all namespaces."""
    with resting():
        yield


@pytest.fixture
def bare_world(client: Client) -> World:
    """A namespace. No operator is started for it."""
    return World.new(client)


@pytest.fixture
def world(bare_world: World, operator: Operator) -> World:  # noqa: ARG001 (it runs)
    """A namespace that an operator watches."""
    return bare_world
