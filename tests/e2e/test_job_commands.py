"""The commands on jobs where pods really run: what needs containers. The rest is in tests/controller."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml
from cluster.waiting import wait_for

from tests.e2e.jobs import mpijob
from tests.engines.test_job_commands import try_out
from tests.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cluster.fixtures import Cluster

    from tests.e2e.jobs import Jobs

PATIENCE = 150.0


@pytest.fixture
def user(cluster: Cluster, tmp_path: Path, jobs: Jobs) -> dict[str, str]:
    """The environment of a user whose context has the namespace of the test."""
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    for each in config["contexts"]:
        each["context"]["namespace"] = jobs.namespace
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    return {**os.environ, "KUBECONFIG": str(tmp_path / "kubeconfig"), "XDG_STATE_HOME": str(tmp_path)}


def test_a_job_on_a_node_is_seen_followed_entered_and_ended(
    user: dict[str, str], jobs: Jobs, loaded: Callable[[str], str]
) -> None:
    def run(*argv: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "mpiboot", *argv]
        return subprocess.run(command, env=user, input=stdin, capture_output=True, text=True, timeout=PATIENCE)

    script = "echo up; until [ -e /tmp/go ]; do sleep 0.2; done; echo gone on; exit 4"
    policy = {"backoffLimit": 0, "cleanPodPolicy": "None"}
    job = mpijob("commands", loaded("openmpi"), ["sh", "-c", script], 2, runPolicy=policy)
    # A kubelet that starts a container again may do so before the Job controller sees that it failed too often.
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "Never"
    jobs.submit(job)
    # Without an option: this machine has no such job, and the kubeconfig's cluster has.
    assert run("wait", "--for", "running", "--timeout", "120", "commands").returncode == 0, jobs.report("commands")
    wait_for("its output", lambda: "up\n" in run("logs", "commands").stdout, PATIENCE)
    shown = json.loads(run("status", "-o", "json", "commands").stdout)
    assert [(each["name"], each["state"], each["ready"]) for each in shown["processes"]] == [
        ("launcher", "running", True), ("worker-0", "running", True), ("worker-1", "running", True)
    ]  # fmt: skip
    assert all(each["host"] for each in shown["processes"])
    assert "SSH listens" in run("logs", "--worker", "1", "commands").stdout
    reasons = [each["reason"] for each in json.loads(run("events", "-o", "json", "commands").stdout)["events"]]
    assert {"MPIJobCreated", "Scheduled", "Started"} <= set(reasons)
    # A shell and single commands
    done = run("shell", "commands", "0", "--", "sh", "-c", "hostname; cat; echo error >&2; exit 5", stdin="input")
    assert (done.returncode, done.stdout, done.stderr) == (5, "commands-worker-0\ninput", "error\n")
    absent = run("shell", "commands", "0", "--", "no-such-program")
    assert absent.returncode == 2
    assert "no-such-program" in absent.stderr
    argv = [sys.executable, "-m", "mpiboot", "shell", "commands", "worker-1"]
    with Terminal(argv, rows=33, columns=99, env=user) as terminal:
        try_out(terminal, "commands-worker-1")
    # Its end
    follows = subprocess.Popen(
        [sys.executable, "-m", "mpiboot", "logs", "-f", "commands"], env=user, stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    assert run("shell", "commands", "--", "touch", "/tmp/go").returncode == 0
    assert run("wait", "--timeout", "120", "commands").returncode == 4, jobs.report("commands")
    lines = follows.communicate(timeout=PATIENCE)[0].splitlines()
    assert [line for line in lines if line in {"up", "gone on"}] == ["up", "gone on"]
    (ended,) = json.loads(run("ps", "-a", "-n", jobs.namespace, "-o", "json").stdout)["jobs"]
    assert (ended["state"], ended["exitCode"]) == ("failed", 4)
    assert run("delete", "commands", "--engine", "kubernetes").stdout == "commands is gone (kubernetes)\n"
