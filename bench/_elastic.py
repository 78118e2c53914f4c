"""A training job that loses workers, and the times of its steps, read from the launcher's output."""

from __future__ import annotations

import contextlib
import re
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

STEP = re.compile(r"step (\d+) loss \S+ size (\d+)")
TORCH, TENSORFLOW = "/examples/elastic/pytorch_mnist_elastic.py", "/examples/elastic/tensorflow2_mnist_elastic.py"
SLOWEST = 240.0
MOST = 5
SILENT = 3  # this worker has a name and an address, but does not answer
# The image's own command, except for the silent worker.
WORKER = f"case $(hostname) in *-worker-{SILENT}) exec sleep infinity;; esac; exec mpiboot worker"


class Step(NamedTuple):
    """One step of the training: when the launcher printed it, and how many ranks made it."""

    at: float
    size: int


class Training(ABC):
    """A running job. The process `output` prints what the launcher prints, and ends when the launcher ends."""

    def __init__(self, name: str, output: subprocess.Popen[str]) -> None:
        self.name, self._output = name, output
        self.steps: list[Step] = []
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @abstractmethod
    def scale(self, workers: int) -> None:
        """Request this number of workers."""

    @abstractmethod
    def kill(self, worker: int) -> None:
        """Kill a worker's processes. The job receives no notice."""

    @abstractmethod
    def remove(self, worker: int) -> None:
        """Remove a worker as the owner of the machine does."""

    @abstractmethod
    def cut(self, worker: int) -> None:
        """Cut a worker from its network, outside of its programs."""

    @abstractmethod
    def connect(self, worker: int) -> None:
        """Connect it again."""

    @abstractmethod
    def pid(self, worker: int) -> int:
        """A process of the worker as this machine sees it; 0 if there is none."""

    def until(self, size: int, since: float, steps: int = 1) -> float:
        """Wait for `steps` steps with this number of ranks, all after `since`; returns the time of the first."""
        found: list[Step] = []

        def enough() -> bool:
            found[:] = [step for step in list(self.steps) if step.at > since and step.size == size]
            return len(found) >= steps

        self.wait(f"a step with {size} ranks", enough)
        return found[0].at

    def longest_gap(self, since: float) -> float:
        """The longest time without a step, from `since` until now."""
        times = [since, *(step.at for step in list(self.steps) if step.at > since), time.time()]
        return max(after - before for before, after in pairwise(times))

    def has_rank(self, worker: int) -> bool:
        """Whether a rank starts or runs there: a training program runs in the worker's network namespace."""
        pid = self.pid(worker)
        return bool(pid) and any(_trains(each, _network(pid)) for each in Path("/proc").iterdir())

    def wait(self, what: str, holds: Callable[[], bool]) -> None:
        """Return once the condition holds. If it never does, the error has the last lines of the job."""
        deadline = time.monotonic() + SLOWEST
        while not holds():
            if self._output.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.name}: never saw {what}:\n{''.join(self._lines[-40:])}")
            time.sleep(0.02)

    def _read(self) -> None:
        assert self._output.stdout
        for line in self._output.stdout:
            now = time.time()
            self._lines.append(line)
            if match := STEP.search(line):
                self.steps.append(Step(now, int(match[2])))


def manifest(name: str, image: str, workers: int, script: str, worker: dict[str, Any]) -> dict[str, Any]:
    """The MPIJob. `worker` adds fields to the workers' pods."""
    words = ["-np", str(workers), "--min-np", "1", "--max-np", str(MOST), "--host-discovery-script",
             "/etc/mpi/discover_hosts.sh", "python", script, "--steps", "1000000"]  # fmt: skip
    main = {"name": "main", "image": image, "imagePullPolicy": "IfNotPresent"}
    launcher = {"containers": [{**main, "command": ["horovodrun"], "args": words}], "terminationGracePeriodSeconds": 1}
    pod = {"containers": [{**main, "command": ["sh", "-c", WORKER]}], "terminationGracePeriodSeconds": 1, **worker}
    return {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "metadata": {"name": name}, "spec": {
        "slotsPerWorker": 1, "runPolicy": {"backoffLimit": 0}, "mpiReplicaSpecs": {
            "Launcher": {"template": {"spec": launcher}},
            "Worker": {"replicas": workers, "template": {"spec": pod}}}}}


def run(*command: str) -> str:
    """What the command printed. If it failed, an error with its stderr."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-500:]}")
    return done.stdout.strip()


def _trains(process: Path, network: str) -> bool:
    with contextlib.suppress(OSError):
        if process.name.isdigit() and b"/examples/elastic/" in (process / "cmdline").read_bytes():
            return _network(int(process.name)) == network
    return False


def _network(pid: int) -> str:
    with contextlib.suppress(OSError):
        return str(Path(f"/proc/{pid}/ns/net").readlink())
    return ""
