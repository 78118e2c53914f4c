"""Jobs with names of their own, and the proof that nothing of them is left."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import docker

PI = """
import os, socket
from mpi4py import MPI

world, steps = MPI.COMM_WORLD, 10_000
part = sum(4 / (1 + ((i + 0.5) / steps) ** 2) for i in range(world.rank, steps, world.size)) / steps
pi = world.allreduce(part)
print(f"rank {world.rank} host {socket.gethostname()} worker {os.environ.get('MPIBOOT_INDEX')} pi {pi:.8f}", flush=True)
"""


@pytest.fixture
def pi() -> str:
    """A program for `python3 -c`: every rank computes a part of pi, then prints its number, host and worker."""
    return PI


@pytest.fixture
def name() -> str:
    """A job name that no other test has."""
    return f"t-{secrets.token_hex(4)}"


@pytest.fixture
def manifest(tmp_path: Path, name: str) -> Callable[..., str]:
    """The path of a manifest whose launcher runs a shell script, and whose parts can be replaced."""

    def write(
        script: str, image: str = "this-machine", *, workers: int = 1, annotations: dict[str, str] | None = None,
        launcher: dict[str, object] | None = None, worker: dict[str, object] | None = None,
        pod: dict[str, object] | None = None, restart: str = "Never", worker_restart: str = "Never",
        worker_pod: dict[str, object] | None = None, **run_policy: object,
    ) -> str:  # fmt: skip
        main = {"name": "main", "image": image}
        spec = {
            "sshAuthMountPath": "/home/mpiuser/.ssh",
            "runPolicy": {"backoffLimit": 0, **run_policy},
            "mpiReplicaSpecs": {
                "Launcher": {"restartPolicy": restart, "template": {"spec": {
                    "containers": [{**main, "command": ["sh", "-c", script], **(launcher or {})}], **(pod or {}),
                }}},
                "Worker": {"replicas": workers, "restartPolicy": worker_restart, "template": {"spec": {
                    "containers": [{**main, **(worker or {})}], **(worker_pod or {}),
                }}},
            },
        }  # fmt: skip
        metadata = {"name": name, "annotations": annotations or {}}
        job = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": metadata, "spec": spec}
        path = tmp_path / "job.yaml"
        path.write_text(json.dumps(job))  # JSON is YAML
        return str(path)

    return write


@dataclass
class Running:
    """`mpiboot run` under way. Its lines are kept as they come."""

    process: subprocess.Popen[str]
    out: list[str]
    err: list[str]
    _readers: list[threading.Thread]

    def wait_for(self, text: str, seconds: float = 60) -> None:
        """Returns once a line holds `text`; fails with all lines if none comes."""
        deadline = time.monotonic() + seconds
        while not any(text in line for line in [*self.out, *self.err]):
            ended = self.process.poll() is not None and not any(reader.is_alive() for reader in self._readers)
            if ended or time.monotonic() > deadline:
                pytest.fail(f"no line with {text!r}:\n{''.join(self.out)}\n{''.join(self.err)}")
            time.sleep(0.02)

    def end(self, seconds: float = 60) -> int:
        """Its exit code; fails with all its output if it does not end."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            pytest.fail(f"it goes on after {seconds:.0f} s:\n{''.join(self.out)}\n{''.join(self.err)}")
        for reader in self._readers:
            reader.join(10)
        return code


@pytest.fixture
def start() -> Iterator[Callable[..., Running]]:
    """Starts the command line in the background: `start("run", ...)`."""
    processes = []

    def begin(*argv: str, env: dict[str, str] | None = None, own_session: bool = False) -> Running:
        process = subprocess.Popen(
            [sys.executable, "-m", "mpiboot", *argv],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})},
            start_new_session=own_session,
        )  # fmt: skip
        processes.append(process)
        out: list[str] = []
        err: list[str] = []
        readers = [
            threading.Thread(target=lines.extend, args=(pipe,), daemon=True)
            for lines, pipe in ((out, process.stdout), (err, process.stderr))
        ]
        for reader in readers:
            reader.start()
        return Running(process, out, err, readers)

    yield begin
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            assert pipe
            pipe.close()


def of_job(engine: docker.DockerClient, name: str) -> list[str]:
    """All containers, networks and volumes of a job, by its label."""
    of: dict[str, str | list[str] | bool] = {"label": f"mpiboot.dev/job={name}"}
    return [
        *(str(one.name) for one in engine.containers.list(all=True, filters=of)),
        *(str(one.name) for one in engine.networks.list(filters=of)),
        *(str(one.name) for one in engine.volumes.list(filters=of)),
    ]


@pytest.fixture
def nothing_left(docker_engine: docker.DockerClient, name: str) -> Iterator[Callable[[], None]]:
    """Asserts that nothing of the job `name` is on the Docker engine; once more after the test."""

    def check() -> None:
        assert of_job(docker_engine, name) == []

    yield check
    left = of_job(docker_engine, name)
    if left:
        subprocess.run([sys.executable, "-m", "mpiboot", "delete", name], check=False, capture_output=True)
    assert left == []


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory and a TMPDIR of this test alone, so that what jobs of this machine leave would be seen."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    return tmp_path


@pytest.fixture
def no_traces(state: Path) -> Callable[[], None]:
    """Asserts that no file and no process of a job of this machine is left; waits for processes that are ending."""

    def check() -> None:
        deadline = time.monotonic() + 60
        while left := [*files(state), *processes(state)]:
            if time.monotonic() > deadline:
                pytest.fail(f"left behind: {left}")
            time.sleep(0.05)

    return check


def files(state: Path) -> list[str]:
    jobs = state / "state" / "mpiboot" / "jobs"
    return [str(path) for place in (jobs, state / "tmp") if place.exists() for path in place.iterdir()]


def processes(state: Path) -> list[str]:
    """Processes whose environment or command names the test's directories: all that a job there starts."""
    marked = str(state).encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_bytes()
                if marked in command or marked in (entry / "environ").read_bytes():
                    found.append(f"{entry.name}: {command.replace(bytes(1), b' ').decode(errors='replace')[:200]}")
    return found
