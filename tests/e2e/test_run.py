"""`mpiboot run --engine kubernetes` and its like, where pods really run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml
from cluster.waiting import wait_for

from tests.cable import Cable
from tests.e2e.jobs import mpijob, one_on_each, pi, ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cluster.fixtures import Cluster

    from tests.e2e.jobs import Jobs, Object

    Start = Callable[..., subprocess.Popen[str]]

PATIENCE = 150.0
COUNT = "i=0; while [ $i -lt 40 ]; do echo line $i; i=$((i+1)); sleep 0.2; done"


@pytest.fixture
def cable(cluster: Cluster) -> Iterator[Cable]:
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    made = Cable(config["clusters"][0]["cluster"]["server"])
    yield made
    made.close()


@pytest.fixture
def start(cluster: Cluster, cable: Cable, tmp_path: Path, jobs: Jobs) -> Iterator[Start]:
    """Starts `mpiboot ...` with a kubeconfig that leads through the cable, in the namespace of the operator."""
    running: list[subprocess.Popen[str]] = []
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = cable.url
    for each in config["contexts"]:
        each["context"]["namespace"] = jobs.namespace
    (tmp_path / "kubeconfig").write_text(json.dumps(config))

    def begin(*argv: str, job: Object | None = None) -> subprocess.Popen[str]:
        if job:
            jobs.submitted.append(job["metadata"]["name"])
            (tmp_path / "job.yaml").write_text(json.dumps(job))
            argv = (*argv, "-f", str(tmp_path / "job.yaml"))
        environment = {**os.environ, "KUBECONFIG": str(tmp_path / "kubeconfig")}
        command = [sys.executable, "-m", "mpiboot", *argv, "--engine", "kubernetes"]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        running.append(process)
        return process

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def printed(process: subprocess.Popen[str], text: str) -> None:
    """Returns when the program has printed a line that holds a text."""
    assert process.stdout
    seen = []
    for line in process.stdout:
        seen.append(line)
        if text in line:
            return
    pytest.fail(f"no line with {text!r}: {''.join(seen)}")


def test_output_and_exit_code_are_the_programs(start: Start, loaded: Callable[[str], str]) -> None:
    process = start("run", job=pi("here", loaded("openmpi")))
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert ranks(out) == one_on_each("here", 2)


def test_a_sidecar_does_not_hide_the_output_of_the_launcher(
    start: Start, jobs: Jobs, loaded: Callable[[str], str]
) -> None:
    image = loaded("openmpi")
    job = mpijob("sidecar", image, ["sh", "-c", "echo of the launcher; exit 7"], 1, runPolicy={"backoffLimit": 0})
    containers = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    containers.append({"name": "beside", "image": image, "imagePullPolicy": "IfNotPresent",
                       "command": ["sh", "-c", "echo of the sidecar"]})  # fmt: skip
    process = start("run", job=job)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 7, err
    assert "of the launcher" in out.splitlines()
    assert "of the sidecar" not in out
    # The cluster's garbage collector deletes the pods after the job.
    wait_for("the end of the pods", lambda: not jobs.pods("sidecar"), PATIENCE)


def test_output_is_whole_after_the_way_to_the_cluster_was_cut(
    start: Start, cable: Cable, loaded: Callable[[str], str]
) -> None:
    process = start("run", job=mpijob("cut", loaded("openmpi"), ["sh", "-c", COUNT], 1))
    printed(process, "line 5")
    cable.plugged = False
    printed_before = 6
    try:
        process.wait(2)
    except subprocess.TimeoutExpired:
        cable.plugged = True
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert out.splitlines() == [f"line {number}" for number in range(printed_before, 40)]
    assert "the cluster answers again" in err


def test_a_signal_reaches_the_program_and_its_last_words_are_printed(
    start: Start, jobs: Jobs, loaded: Callable[[str], str]
) -> None:
    script = "trap 'echo got TERM; exit 3' TERM; echo up; while :; do sleep 0.1; done"
    job = mpijob("ended", loaded("openmpi"), ["sh", "-c", script], 1)
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["terminationGracePeriodSeconds"] = 20
    process = start("run", job=job)
    printed(process, "up")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 143, err
    assert "got TERM\n" in out
    wait_for("the end of the launcher's pod", lambda: not jobs.pods("ended", "launcher"), PATIENCE)


def test_another_terminal_lists_reads_and_deletes_the_job(start: Start, loaded: Callable[[str], str]) -> None:
    process = start("run", job=mpijob("other", loaded("openmpi"), ["sh", "-c", "echo up; exec sleep 100"], 1))
    printed(process, "up")
    rows = start("ps").communicate(timeout=PATIENCE)[0].splitlines()
    assert [row.split()[:4] for row in rows[1:]] == [["other", "kubernetes", "running", "1"]]
    # The order of stdout and stderr is not kept: the runtime reads two pipes.
    assert "up" in start("logs", "other").communicate(timeout=PATIENCE)[0].splitlines()
    follower = start("logs", "-f", "other")
    printed(follower, "up")
    assert start("delete", "other").communicate(timeout=PATIENCE)[0] == "other is gone (kubernetes)\n"
    err = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 143
    assert "it was deleted while it ran" in err
    follower.communicate(timeout=PATIENCE)
