"""Jobs of the Horovod images, with names that no other test has; nothing of them may be left."""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests import containers
from tests.engines.conftest import start

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import docker

__all__ = ["inside", "name", "run", "script", "start"]
# horovodrun imports the framework a dozen times before it starts anything: minutes on a busy machine.
WITHIN = 540


@dataclass(frozen=True)
class Trained:
    """What a job printed: the loss by step, and everything."""

    losses: dict[int, float]
    sizes: list[int]
    text: str


@pytest.fixture
def name(docker_engine: docker.DockerClient) -> Iterator[str]:
    """A job name that no other test has."""
    chosen = f"t-{secrets.token_hex(4)}"
    yield chosen
    of: dict[str, str | list[str] | bool] = {"label": f"mpiboot.dev/job={chosen}"}
    assert [one.name for one in docker_engine.containers.list(all=True, filters=of)] == []
    assert [one.name for one in docker_engine.networks.list(filters=of)] == []


@pytest.fixture
def run(mpiboot: Callable[..., subprocess.CompletedProcess[str]], name: str) -> Callable[..., Trained]:
    """`mpiboot run` on Docker, which must succeed: `run("-n", "2", image, "--", "python", ...)`."""

    def once(*argv: str) -> Trained:
        done = mpiboot("run", "--engine", "docker", "--name", name, *argv, timeout=WITHIN)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        found = re.findall(r"step (\d+) loss ([\d.]+) size (\d+)", done.stdout)
        losses = {int(step): float(loss) for step, loss, _ in found}
        return Trained(losses, [int(size) for *_, size in found], done.stdout)

    return once


@pytest.fixture
def script(run: Callable[..., Trained], tmp_path: Path, name: str) -> Callable[..., Trained]:
    """Runs a shell script as the launcher of two workers: `script(image, "horovodrun ...", slots=2)`."""

    def once(image: str, text: str, *, slots: int = 1, user: int | None = None) -> Trained:
        container = {"name": "main", "image": image}
        pod: dict[str, Any] = {"securityContext": {"runAsUser": user, "runAsGroup": 0}} if user else {}
        launcher = {**container, "command": ["sh", "-c", text]}
        job = {
            "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": name},
            "spec": {
                "slotsPerWorker": slots, "sshAuthMountPath": "/home/mpiuser/.ssh", "runPolicy": {"backoffLimit": 0},
                "mpiReplicaSpecs": {
                    "Launcher": {"restartPolicy": "Never", "template": {"spec": {"containers": [launcher], **pod}}},
                    "Worker": {"replicas": 2, "template": {"spec": {"containers": [container], **pod}}},
                },
            },
        }  # fmt: skip
        path = tmp_path / "job.yaml"
        path.write_text(json.dumps(job))  # JSON is YAML
        return run("-f", str(path))

    return once


@pytest.fixture
def inside(docker_engine: docker.DockerClient) -> Callable[..., tuple[int, str]]:
    """One command in a container of an image: `inside(image, "pwd")` gives its exit code and output."""
    return partial(containers.run, docker_engine)
