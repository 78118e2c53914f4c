"""The command line against a cluster: run, status, logs, delete. Pods have no output here: no kubelet runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.controller.conftest import PATIENCE, eventually, mpi_job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cluster.fixtures import Kubernetes

    from tests.controller.conftest import World

    Command = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def command(api_server: Kubernetes) -> Iterator[Command]:
    """Starts `mpiboot ...` as somebody whose kubeconfig is the administrator's."""
    running: list[subprocess.Popen[str]] = []

    def start(*argv: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "KUBECONFIG": str(api_server.kubeconfig)}
        pipe = subprocess.PIPE
        words = [sys.executable, "-m", "mpiboot", *argv]
        process = subprocess.Popen(words, env=environment, stdout=pipe, stderr=pipe, text=True)
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


@pytest.fixture
def manifest(world: World, tmp_path: Path) -> str:
    job = mpi_job()
    job["metadata"]["namespace"] = world.namespace
    path = tmp_path / "job.yaml"
    path.write_text(json.dumps(job))
    return str(path)


def ends(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def test_run_ends_as_the_launcher_ends_and_leaves_nothing(world: World, command: Command, manifest: str) -> None:
    process = command("run", "--engine=kubernetes", "-f", manifest)
    world.started()
    assert process.stderr
    assert next(line for line in process.stderr if "Waiting" in line) == "mpiboot: Waiting, 0/2 workers ready\n"
    world.run_workers(ready=True)
    state = {"terminated": {"exitCode": 3, "reason": "Error"}}
    container = {"name": "main", "image": "x", "imageID": "x", "ready": False, "restartCount": 0, "state": state}
    world.phase(world.launcher_pod(), "Failed", containerStatuses=[container])
    world.launcher_ends("Failed", failed=1, reason="BackoffLimitExceeded")
    code, _, err = ends(process)
    assert code == 3
    assert "mpiboot: Failed: " in err
    eventually("no job", lambda: world.get("MPIJob", "job") is None)


def test_ctrl_c_ends_the_job(world: World, command: Command, manifest: str) -> None:
    process = command("run", "--engine=kubernetes", "-f", manifest)
    world.started()
    process.send_signal(signal.SIGINT)
    code, _, err = ends(process)
    assert code == 130
    assert "Traceback" not in err
    eventually("no job", lambda: world.get("MPIJob", "job") is None)


def test_status_tells_what_is_missing_and_why(world: World, command: Command) -> None:
    world.submit()
    world.started()
    world.launcher_pod()
    pending = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    world.phase(world.workers()[1], "Pending", conditions=[pending])
    eventually("the reason", lambda: world.status().get("reason"))
    code, out, _ = ends(command("status", "job", "-n", world.namespace))
    assert code == 0
    assert f"{world.namespace}/job: Waiting, 0/2 workers ready: worker-1: Unschedulable: 0/3 nodes" in out
    assert "job-worker-1  Pending: Unschedulable: 0/3 nodes" in out
    assert "held back until all workers are ready" in out
    assert "created" in out.partition("timeline")[2]


def test_logs_before_the_launcher_starts_say_so(world: World, command: Command) -> None:
    world.submit()
    world.started()
    code, _, err = ends(command("logs", "job", "--engine=kubernetes", "-n", world.namespace))
    assert code == 2
    assert "has not started yet" in err


def test_delete_removes_the_job(world: World, command: Command) -> None:
    world.submit()
    world.started()
    assert ends(command("delete", "job", "--engine=kubernetes", "-n", world.namespace))[0] == 0
    assert world.get("MPIJob", "job") is None


@pytest.mark.parametrize("words", [("status", "none"), ("logs", "none", "--engine=kubernetes"),
                                   ("delete", "none", "--engine=kubernetes")], ids=lambda words: words[0])  # fmt: skip
def test_a_job_that_is_not_there_is_said(world: World, command: Command, words: Any) -> None:  # noqa: ANN401
    code, _, err = ends(command(*words, "-n", world.namespace))
    assert code == 2
    assert f"there is no MPIJob none in namespace {world.namespace}" in err


def test_an_invalid_job_is_refused_before_the_cluster_sees_it(world: World, command: Command, tmp_path: Path) -> None:
    job = mpi_job(slotsPerWorker=-1)
    job["metadata"]["namespace"] = world.namespace
    path = tmp_path / "bad.yaml"
    path.write_text(json.dumps(job))
    code, _, err = ends(command("run", "--engine=kubernetes", "-f", str(path)))
    assert code == 2
    assert "spec.slotsPerWorker" in err
    assert world.all("MPIJob") == []
