"""A training job on Docker whose workers are taken away, and the times of its steps as its terminal shows them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench._launch import MPIBOOT
from mpiboot.containers import docker_cli

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

STEP = re.compile(r"step (\d+) loss \S+ size (\d+)")
SCRIPT = "/examples/elastic/pytorch_mnist_elastic.py"
SLOWEST = 240.0


class Step(NamedTuple):
    """One step of the training: when it was printed, and by how many ranks it was made."""

    at: float
    size: int


class Training:
    """A running job of at most three workers."""

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self.name, self._process = name, process
        self.steps: list[Step] = []
        self._said: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def until(self, size: int, since: float, steps: int = 1) -> float:
        """The time of the first of so many steps with this number of ranks, all printed after `since`."""
        deadline = time.monotonic() + SLOWEST
        while True:
            found = [step for step in list(self.steps) if step.at > since]
            last = [step for step in found if step.size == size]
            if len(last) >= steps:
                return last[0].at
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.name}: no step with {size} ranks:\n{''.join(self._said[-40:])}")
            time.sleep(0.02)

    def longest_gap(self, since: float) -> float:
        """How long training stood still."""
        times = [since, *(step.at for step in list(self.steps) if step.at > since)]
        return max((after - before for before, after in pairwise(times)), default=0.0)

    def scale(self, workers: int) -> None:
        subprocess.run([MPIBOOT, "scale", self.name, str(workers)], check=True, capture_output=True)

    def kill(self, worker: int) -> float:
        """Kill a worker's container; when that was."""
        now = time.time()
        subprocess.run([docker_cli(), "kill", f"{self.name}-worker-{worker}"], check=True, capture_output=True)
        return now

    def link(self, worker: int, state: str) -> float:
        """Cut a worker from its network, or connect it again, where no program of it takes part; when that was."""
        ask = [docker_cli(), "inspect", "-f", "{{.State.Pid}}", f"{self.name}-worker-{worker}"]
        pid = subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip()
        now = time.time()
        subprocess.run(["nsenter", "-t", pid, "-n", "ip", "link", "set", "eth0", state], check=True)
        return now

    def has_rank(self, worker: int) -> bool:
        """Whether a rank is being started there: its program runs."""
        top = [docker_cli(), "top", f"{self.name}-worker-{worker}"]
        return SCRIPT in subprocess.run(top, capture_output=True, text=True).stdout

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            now = time.time()
            self._said.append(line)
            if match := STEP.search(line):
                self.steps.append(Step(now, int(match[2])))


@contextmanager
def training(image: str, workers: int, number: int) -> Iterator[Training]:
    """A job that has begun to train with all of its workers."""
    name = f"bench-elastic-{os.getpid()}-{number}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "job.json")
        path.write_text(json.dumps(_job(name, image, workers)))
        command = [MPIBOOT, "run", "--engine", "docker", "-f", str(path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            found = Training(name, process)
            found.until(workers, 0.0, steps=10)
            yield found
        finally:
            process.terminate()
            process.wait(60)


def _job(name: str, image: str, workers: int) -> dict[str, Any]:
    words = ["-np", str(workers), "--min-np", "1", "--max-np", "3", "--host-discovery-script",
             "/etc/mpi/discover_hosts.sh", "python", SCRIPT, "--steps", "1000000"]  # fmt: skip
    main = {"name": "main", "image": image}
    launcher = {"containers": [{**main, "command": ["horovodrun"], "args": words}], "terminationGracePeriodSeconds": 1}
    worker = {"containers": [main], "terminationGracePeriodSeconds": 1}
    return {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "metadata": {"name": name}, "spec": {
        "slotsPerWorker": 1, "runPolicy": {"backoffLimit": 0}, "mpiReplicaSpecs": {
            "Launcher": {"template": {"spec": launcher}},
            "Worker": {"replicas": workers, "template": {"spec": worker}}}}}
