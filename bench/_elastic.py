"""A training job whose workers are taken away, and the times of its steps as its launcher's output shows them."""

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
SILENT = 3  # this worker has a name and an address, but nobody answers there
# The image's own command, except for that one.
WORKER = f"case $(hostname) in *-worker-{SILENT}) exec sleep infinity;; esac; exec mpiboot worker"


class Step(NamedTuple):
    """One step of the training: when it was printed, and by how many ranks it was made."""

    at: float
    size: int


class Training(ABC):
    """A running job. `output` prints what its launcher prints, and ends with it."""

    def __init__(self, name: str, output: subprocess.Popen[str]) -> None:
        self.name, self._output = name, output
        self.steps: list[Step] = []
        self._said: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @abstractmethod
    def scale(self, workers: int) -> None:
        """Ask for so many workers."""

    @abstractmethod
    def kill(self, worker: int) -> None:
        """Kill a worker's processes, without a word to anybody."""

    @abstractmethod
    def remove(self, worker: int) -> None:
        """Take a worker away as the machine's owner does."""

    @abstractmethod
    def cut(self, worker: int) -> None:
        """Cut a worker from its network where no program of it takes part."""

    @abstractmethod
    def connect(self, worker: int) -> None:
        """Connect it again."""

    @abstractmethod
    def pid(self, worker: int) -> int:
        """A process of the worker as this machine sees it; 0 if there is none."""

    def until(self, size: int, since: float, steps: int = 1) -> float:
        """The time of the first of so many steps with this number of ranks, all printed after `since`."""
        found: list[Step] = []

        def enough() -> bool:
            found[:] = [step for step in list(self.steps) if step.at > since and step.size == size]
            return len(found) >= steps

        self.wait(f"a step with {size} ranks", enough)
        return found[0].at

    def longest_gap(self, since: float) -> float:
        """How long training stood still, up to now."""
        times = [since, *(step.at for step in list(self.steps) if step.at > since), time.time()]
        return max(after - before for before, after in pairwise(times))

    def has_rank(self, worker: int) -> bool:
        """Whether a rank is being started there: a training program runs in the worker's network."""
        pid = self.pid(worker)
        return bool(pid) and any(_trains(each, _network(pid)) for each in Path("/proc").iterdir())

    def wait(self, what: str, holds: Callable[[], bool]) -> None:
        """Return once it holds; the job's last words if it never does."""
        deadline = time.monotonic() + SLOWEST
        while not holds():
            if self._output.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.name}: never saw {what}:\n{''.join(self._said[-40:])}")
            time.sleep(0.02)

    def _read(self) -> None:
        assert self._output.stdout
        for line in self._output.stdout:
            now = time.time()
            self._said.append(line)
            if match := STEP.search(line):
                self.steps.append(Step(now, int(match[2])))


def manifest(name: str, image: str, workers: int, script: str, worker: dict[str, Any]) -> dict[str, Any]:
    """The job; `worker` holds more fields of its workers' pods."""
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
    """What it printed; an error that carries its complaint if it failed."""
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
