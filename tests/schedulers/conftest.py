"""Real gang schedulers on an API server with nodes that exist only there. Tests play kubelets and Job controller.

The schedulers decide as on a real cluster: they see nodes, pods and PodGroups, and bind pods to nodes.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cluster import processes, versions
from cluster.home import CACHE, Home

from tests.conftest import missing
from tests.controller.conftest import (
    PATIENCE,
    World,
    client,
    eventually,
    start_operator,
)
from tests.operators import resting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cluster.fixtures import Kubernetes

    from tests.controller.conftest import Client, Object

NODES, CPUS = 3, 4  # room for three jobs of four pods with one CPU each

VOLCANO = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
PLUGINS = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {{leaderElect: false}}
clientConnection: {{kubeconfig: {kubeconfig}}}
profiles:
- schedulerName: scheduler-plugins-scheduler
  plugins:
    multiPoint: {{enabled: [{{name: Coscheduling}}]}}
    queueSort: {{enabled: [{{name: Coscheduling}}], disabled: [{{name: "*"}}]}}
  pluginConfig:
  - name: Coscheduling
    args: {{permitWaitingTimeSeconds: 10}}
"""


def command(name: str, kubeconfig: Path, directory: Path) -> list[str]:
    """The command line of a scheduler, whose configuration goes into the directory."""
    file = directory / "configuration.yaml"
    if name == "volcano":
        file.write_text(VOLCANO)
        return [
            versions.program("vc-scheduler"), f"--kubeconfig={kubeconfig}", f"--scheduler-conf={file}",
            "--leader-elect=false", "--enable-healthz=false", "--enable-metrics=false", "--schedule-period=200ms",
        ]  # fmt: skip
    file.write_text(PLUGINS.format(kubeconfig=kubeconfig))
    return [versions.program("plugins-scheduler"), f"--config={file}", "--secure-port=0"]


@pytest.fixture(params=["volcano", "scheduler-plugins"])
def scheduler(
    request: pytest.FixtureRequest,
    api_server: Kubernetes,
    client: Client,
    nodes: None,  # noqa: ARG001 (the scheduler finds them)
    tmp_path: Path,
) -> Iterator[str]:
    """The name of a gang scheduler that runs."""
    name = str(request.param)
    programs = versions.VOLCANO if name == "volcano" else versions.SCHEDULER_PLUGINS
    if programs.missing():
        missing(f"the gang scheduler {name}", ".venv/bin/python tools/cluster build schedulers")
    for file in programs.files:
        path = CACHE / "programs" / programs.version / Path(file).name
        api_server.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(path))
    home = Home(tmp_path)
    processes.start(home, "scheduler", command(name, api_server.kubeconfig, tmp_path), dies_with_us=True)
    if name == "volcano":
        open_queue(client)
    yield name
    try:
        processes.check(home)
    finally:
        processes.end_all(home)


def open_queue(client: Client) -> None:
    """Do what Volcano's controllers do: the scheduler makes the queue, they open it."""
    path = "/apis/scheduling.volcano.sh/v1beta1/queues/default"
    eventually("Volcano's default queue", lambda: client.ask("GET", path).ok)
    client.do("PATCH", f"{path}/status", {"status": {"state": "Open"}}, "application/merge-patch+json")


@pytest.fixture(scope="session")
def nodes(client: Client) -> None:
    """Nodes that are ready and run nothing."""
    room = {"cpu": str(CPUS), "memory": "16Gi", "pods": "50"}
    ready = {"type": "Ready", "status": "True", "reason": "Test", "message": "a node of the test"}
    for number in range(NODES):
        name = f"node-{number}"
        labels = {"kubernetes.io/hostname": name}
        client.do("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
        status = {"status": {"capacity": room, "allocatable": room, "conditions": [ready]}}
        client.do("PATCH", f"/api/v1/nodes/{name}/status", status, "application/merge-patch+json")
        untainted = {"spec": {"taints": None}}
        client.do("PATCH", f"/api/v1/nodes/{name}", untainted, "application/merge-patch+json")


@dataclass
class Players:
    """The kubelets and the Job controller of one namespace. A job ends once its launcher has the workers it needs."""

    world: World
    needed: Callable[[str], int]
    most_at_once: int = 0
    _over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._play)

    def __enter__(self) -> Players:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _play(self) -> None:
        while not self._over.is_set():
            with suppress(AssertionError):  # an object has changed or gone since it was read
                self._step()
            time.sleep(0.1)

    def _step(self) -> None:
        pods = self.world.all("Pod")
        for pod in pods:
            if "deletionTimestamp" in pod["metadata"]:
                self.world.client.ask(
                    "DELETE", self.world.path("Pod", pod["metadata"]["name"]), {"gracePeriodSeconds": 0}
                )
            elif pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending":
                self.world.phase(pod, "Running", conditions=[{"type": "Ready", "status": "True"}], podIP="10.1.2.3")
        running = {name for name in self._jobs() if self._runs(name, pods)}
        self.most_at_once = max(self.most_at_once, len(running))
        for name in running:
            for pod in self._pods(name, "launcher", pods):
                self.world.phase(pod, "Succeeded")
            self.world.launcher_ends("Complete", name)

    def _jobs(self) -> list[str]:
        """Jobs whose launcher has a pod that runs. A launcher without a pod gets one."""
        found = []
        for job in self.world.all("Job"):
            name = job["metadata"]["labels"]["training.kubeflow.org/job-name"]
            if job["status"].get("conditions") or job["spec"].get("suspend"):
                continue
            pods = self._pods(name, "launcher", self.world.all("Pod"))
            if not pods:
                self.world.launcher_pod(name)
            elif pods[0]["status"]["phase"] == "Running":
                found.append(name)
        return found

    def _runs(self, name: str, pods: list[Object]) -> bool:
        workers = [pod for pod in self._pods(name, "worker", pods) if pod["status"]["phase"] == "Running"]
        return len(workers) >= self.needed(name)

    def _pods(self, name: str, role: str, pods: list[Object]) -> list[Object]:
        wanted = {"training.kubeflow.org/job-name": name, "training.kubeflow.org/job-role": role}
        return [pod for pod in pods if wanted.items() <= pod["metadata"]["labels"].items()]


@pytest.fixture
def world(client: Client) -> World:
    """A namespace. The test starts its operator."""
    return World.new(client)


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """The operator of other tests, which watches all namespaces, rests meanwhile."""
    with resting():
        yield


__all__ = ["PATIENCE", "Players", "client", "eventually", "start_operator"]
