"""Restarts in place: from a dead rank, a new worker and a cut network to the first rank of the next attempt."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench._engine import engine
from bench._launch import MPIBOOT, PATIENCE
from bench.harness import Row
from mpiboot.containers.client import docker_cli

if TYPE_CHECKING:
    from collections.abc import Iterator

IMAGE = "mpiboot/openmpi:latest"
REPEATS, CUTS = 10, 2
# A rank prints its attempt and the time at which it starts, in seconds since 1970.
PROGRAM = ("sh", "-c", 'echo "attempt $MPIBOOT_ATTEMPT $(date +%s.%N)"; exec sleep 600')
KILL_RANK = r"""
for p in /proc/[0-9]*; do [ "$(tr '\0' ' ' <$p/cmdline)" = 'sleep 600 ' ] && kill -9 ${p#/proc/}; done; true
"""


def measure() -> list[Row]:
    with engine(IMAGE):
        return _measure()


def _measure() -> list[Row]:
    ranks, workers, cuts = list[float](), list[float](), list[float]()
    for number in range(REPEATS):
        with _job(f"bench-restarts-{os.getpid()}-{number}") as job:
            killed = time.time()
            _docker("exec", f"{job.name}-worker-0", "sh", "-c", KILL_RANK)
            ranks.append(job.first_rank(2) - killed)
            # The second attempt dies quickly too, so the third waits 1 s at least, while the successor starts.
            _docker("kill", f"{job.name}-worker-1")
            first = job.first_rank(3)
            workers.append(first - job.listens("worker-1", 2))
    for number in range(CUTS):
        with _job(f"bench-cut-{os.getpid()}-{number}") as job:
            cut = time.time()
            _docker("network", "disconnect", "-f", job.network(), f"{job.name}-worker-1")
            cuts.append(job.says(r"attempt 1 of \d+ ended") - cut)
    return [
        Row("dead rank to the first rank of the next attempt", "s", ranks, limit=1.0),
        Row("successor of a killed worker ready to the first rank", "s", workers, limit=1.0),
        Row("network of a worker cut to the end of the attempt", "s", cuts, limit=60.0),
    ]


def versions() -> dict[str, str]:
    return {"docker": _docker("version", "--format", "{{.Server.Version}}").strip()}


class _Job:
    """A running job and its lines, each with the time at which it came."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lines: list[tuple[float, str]] = []
        words = ("-n", "2", "--workers", "2", "--restarts", "9", IMAGE, "--", *PROGRAM)
        self._process = subprocess.Popen(
            [MPIBOOT, "run", "--engine", "docker", "--name", name, *words],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "PATH": f"{Path(docker_cli()).parent}:{os.environ['PATH']}"},
        )  # fmt: skip
        threading.Thread(target=self._read, daemon=True).start()

    def first_rank(self, attempt: int) -> float:
        """When the first rank of this attempt started."""
        self.says(rf"^attempt {attempt} ([\d.]+)", times=2)
        found = (re.search(rf"^attempt {attempt} ([\d.]+)", line) for _, line in self._lines)
        return min(float(match[1]) for match in found if match)

    def listens(self, worker: str, times: int) -> float:
        """When a worker's sshd was ready for the last of so many times."""
        return self.says(rf"{worker} .*SSH listens", times=times)

    def says(self, pattern: str, times: int = 1) -> float:
        """When such a line came for the last of so many times."""
        deadline = time.monotonic() + 2 * PATIENCE
        while time.monotonic() < deadline:
            came = [at for at, line in self._lines if re.search(pattern, line)]
            if len(came) >= times:
                return came[times - 1]
            time.sleep(0.01)
        raise RuntimeError(f"never said {pattern}: {''.join(line for _, line in self._lines)}")

    def network(self) -> str:
        networks = "{{range $name, $_ := .NetworkSettings.Networks}}{{$name}}{{end}}"
        return _docker("inspect", "--format", networks, f"{self.name}-worker-1").strip()

    def end(self) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE)

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._lines.append((time.time(), line))


@contextmanager
def _job(name: str) -> Iterator[_Job]:
    job = _Job(name)
    try:
        job.first_rank(1)
        yield job
    finally:
        job.end()


def _docker(*words: str) -> str:
    done = subprocess.run([docker_cli(), *words], check=True, capture_output=True, text=True, timeout=PATIENCE)
    return done.stdout
