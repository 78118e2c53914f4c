"""A change of Worker.replicas in a running job: how soon the launcher's discovery script shows it."""

from __future__ import annotations

import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench import _operators
from bench._cluster import Client, client, create, log, namespace, pods, remove, wait
from bench._cluster import tested as versions  # noqa: F401 (bench/run.py calls it)
from bench.harness import Row
from mpiboot.containers.client import docker_cli

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

OURS = "mpiboot/openmpi:latest"
THEIRS = "mpiboot-bench/elastic:latest"  # the same image, under a name that the operator does not take for ours
PROGRAM = Path(__file__).resolve().parent.parent / "tests" / "systems" / "d_elastic" / "horovodrun"
ROUNDS = 4
GOAL = 3.0
JOBS = "/apis/kubeflow.org/v1/namespaces/{}/mpijobs"


def measure() -> list[Row]:
    subprocess.run([docker_cli(), "tag", OURS, THEIRS], check=True)
    api = client(OURS, THEIRS)
    rows = []
    for what, image in (("in place, our image", OURS), ("behind a gate, foreign image", THEIRS)):
        with namespace(api, "elastic") as space, _operators.ours(space), _running(api, space, image) as launcher:
            up, down = [], []
            for _ in range(ROUNDS):
                up.append(_change(api, space, launcher, 3))
                down.append(_change(api, space, launcher, 2))
        rows += [Row(f"2 -> 3 workers, {what}", "s", up, limit=GOAL),
                 Row(f"3 -> 2 workers, {what}", "s", down, limit=GOAL)]
    return rows


@contextmanager
def _running(api: Client, space: str, image: str) -> Iterator[str]:
    """The name of the launcher's pod, once its list of hosts has both workers."""
    path = create(api, JOBS.format(space), _job(image))["metadata"]["name"]
    launcher = ""

    def listed() -> bool:
        nonlocal launcher
        names = (each["metadata"]["name"] for each in pods(api, space))
        launcher = next((name for name in names if "launcher" in name), "")
        return bool(launcher) and _sizes(api, space, launcher)[-1:] == [2]

    wait("two hosts", listed)
    yield launcher
    remove(api, f"{JOBS.format(space)}/{path}", space)


def _change(api: Client, space: str, launcher: str, workers: int) -> float:
    """Seconds from the patch to the launcher's line about it, both by the node's clock."""
    time.sleep(1)  # until the effects of the change before are over
    seen = len(_sizes(api, space, launcher))
    began = time.time()
    patch = {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": workers}}}}
    answer = api.patch(f"{JOBS.format(space)}/elastic", patch)
    if answer.status != 200:
        raise RuntimeError(f"the patch: {answer.status} {answer.text[:300]}")
    wait(f"{workers} hosts", lambda: _sizes(api, space, launcher)[seen:][-1:] == [workers])
    shown = [when for when, text in log(api, space, launcher, "main") if text.startswith("hosts: ")]
    return shown[-1] - began


def _sizes(api: Client, space: str, launcher: str) -> list[int]:
    lines = [text for _, text in _log(api, space, launcher) if text.startswith("hosts: ")]
    return [len(line.split()) - 1 for line in lines]


def _log(api: Client, space: str, launcher: str) -> list[tuple[float, str]]:
    try:
        return log(api, space, launcher, "main")
    except ValueError:  # the container has not started, and the answer is no log
        return []


def _job(image: str) -> dict[str, Any]:
    script = f"ELASTIC_SIZES=' never'\n{PROGRAM.read_text()}"
    words = ["sh", "-c", script, "horovodrun", "-np", "2", "--min-np", "2", "--max-np", "3",
             "--host-discovery-script", "/etc/mpi/discover_hosts.sh"]  # fmt: skip
    main = {"name": "main", "image": image, "imagePullPolicy": "IfNotPresent"}
    return {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "metadata": {"name": "elastic"}, "spec": {
        "slotsPerWorker": 1, "mpiReplicaSpecs": {
            role: {"replicas": count, "template": {"spec": {
                "terminationGracePeriodSeconds": 1, "containers": [{**main, **more}]}}}
            for role, count, more in (("Launcher", 1, {"command": words}), ("Worker", 2, {}))}}}
