"""The training job on Docker."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench._elastic import TORCH, Training, manifest, run
from bench._launch import MPIBOOT
from mpiboot.containers.client import docker_cli

if TYPE_CHECKING:
    from collections.abc import Iterator


class OnDocker(Training):
    """A job of `mpiboot run --engine docker`. The names of its containers begin with `name`, the job's name."""

    def scale(self, workers: int) -> None:
        run(MPIBOOT, "scale", self.name, str(workers))

    def kill(self, worker: int) -> None:
        run(docker_cli(), "kill", self._container(worker))

    def remove(self, worker: int) -> None:
        run(docker_cli(), "rm", "--force", self._container(worker))

    def cut(self, worker: int) -> None:
        self._link(worker, "down")

    def connect(self, worker: int) -> None:
        self._link(worker, "up")

    def pid(self, worker: int) -> int:
        command = [docker_cli(), "inspect", "-f", "{{.State.Pid}}", self._container(worker)]
        return int(subprocess.run(command, capture_output=True, text=True).stdout.strip() or 0)

    def _container(self, worker: int) -> str:
        return f"{self.name}-worker-{worker}"

    def _link(self, worker: int, state: str) -> None:
        run("nsenter", "-t", str(self.pid(worker)), "-n", "ip", "link", "set", "eth0", state)


@contextmanager
def training(image: str, workers: int, label: str, script: str = TORCH) -> Iterator[Training]:
    """A job that trains on all of its workers."""
    name = f"bench-elastic-{os.getpid()}-{label}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "job.json")
        path.write_text(json.dumps(manifest(name, image, workers, script, {})))
        command = [MPIBOOT, "run", "--engine", "docker", "-f", str(path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            job = OnDocker(name, process)
            job.until(workers, 0.0, steps=10)
            yield job
        finally:
            process.terminate()
            process.wait(60)
