"""The commands on jobs against a real API server and a running operator: the same table as tests/engines has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from cluster.fixtures import kubectl

from tests.cable import Cable
from tests.controller.conftest import PATIENCE, eventually
from tests.engines.test_job_commands import KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cluster.fixtures import Kubernetes

    from tests.controller.conftest import World

    Mpiboot = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def user(api_server: Kubernetes, tmp_path: Path) -> dict[str, str]:
    """The environment of a user of this cluster, without a container engine and without jobs of this machine."""
    return {
        **os.environ, "KUBECONFIG": str(api_server.kubeconfig), "XDG_STATE_HOME": str(tmp_path),
        "DOCKER_HOST": "unix:///nowhere/docker.sock",
    }  # fmt: skip


@pytest.fixture
def mpiboot(user: dict[str, str]) -> Mpiboot:
    def run(*argv: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "mpiboot", *argv]
        return subprocess.run(command, env=user, capture_output=True, text=True, timeout=PATIENCE)

    return run


@pytest.fixture
def start(user: dict[str, str]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    running: list[subprocess.Popen[str]] = []

    def begin(*argv: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "mpiboot", *argv]
        pipe = subprocess.PIPE
        running.append(subprocess.Popen(command, env=user, stdout=pipe, stderr=pipe, text=True))
        return running[-1]

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def printed(done: subprocess.CompletedProcess[str]) -> Any:  # noqa: ANN401 (JSON)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["version"] == 1
    return found


def fails(world: World, code: int) -> None:
    """The launcher of the job ends with this code, and its Job gives up."""
    state = {"terminated": {"exitCode": code, "reason": "Error"}}
    container = {"name": "main", "image": "x", "imageID": "x", "ready": False, "restartCount": 0, "state": state}
    world.phase(world.launcher_pod(), "Failed", containerStatuses=[container])
    eventually("its end", lambda: "exit code" in (world.status().get("reason") or ""))
    world.launcher_ends("Failed", failed=1, reason="BackoffLimitExceeded")
    eventually("its failure", lambda: world.condition("Failed"))


def test_a_job_is_listed_shown_waited_for_and_deleted(
    world: World, mpiboot: Mpiboot, start: Callable[..., subprocess.Popen[str]]
) -> None:
    there = ("-n", world.namespace)
    world.submit()
    world.started()
    # ps; a namespace alone says that it is a cluster's
    (listed,) = printed(mpiboot("ps", *there, "-o", "json"))["jobs"]
    assert set(listed) == KEYS
    assert (listed["name"], listed["engine"], listed["namespace"]) == ("job", "kubernetes", world.namespace)
    assert (listed["state"], listed["workers"], listed["exitCode"], listed["ended"]) == ("pending", 2, None, None)
    # status, and what follows it
    eventually("a state", lambda: world.status().get("state") == "Waiting")
    shown = printed(mpiboot("status", "job", *there, "-o", "json"))
    assert shown["job"]["run"] == world.job()["metadata"]["uid"]
    assert [(each["name"], each["state"], each["ready"], each["id"]) for each in shown["processes"]] == [
        ("worker-0", "pending", False, "job-worker-0"), ("worker-1", "pending", False, "job-worker-1")
    ]  # fmt: skip
    watches = start("status", "-w", "job", *there)
    assert watches.stdout
    assert watches.stdout.readline() == f"{world.namespace}/job: Waiting, 0/2 workers ready\n"
    waits = start("wait", "job", *there)
    late = mpiboot("wait", "--for", "running", "--timeout", "0", "job", *there)
    assert (late.returncode, late.stderr) == (124, "mpiboot: job is pending after 0 s; waited for: running\n")
    # events
    world.said("MPIJobCreated")
    events = printed(mpiboot("events", "job", *there, "-o", "json"))["events"]
    assert ("MPIJobCreated", "mpijob/job", "Normal") in [(e["reason"], e["object"], e["type"]) for e in events]
    assert f"mpijob/job  MPIJobCreated: MPIJob {world.namespace}/job is created." in mpiboot(
        "events", "job", *there
    ).stdout
    # a shell needs a pod that runs
    none = mpiboot("shell", "job", "0", *there)
    assert none.returncode == 2
    assert "job has no running worker-0: it has a launcher and worker-0 to worker-1" in none.stderr
    wrong = mpiboot("logs", "--worker", "7", "job", *there)
    assert (wrong.returncode, "job has no running worker-7" in wrong.stderr) == (2, True)
    # its end
    world.run_workers(ready=True)
    fails(world, 3)
    assert waits.wait(PATIENCE) == 3
    assert watches.wait(PATIENCE) == 0
    assert "Failed" in watches.stdout.read()
    assert printed(mpiboot("ps", *there, "-o", "json"))["jobs"] == []
    (ended,) = printed(mpiboot("ps", "-a", *there, "-o", "json"))["jobs"]
    assert (ended["state"], ended["exitCode"]) == ("failed", 3)
    assert ended["ended"] >= ended["created"]
    never = mpiboot("wait", "--for", "succeeded", "job", *there)
    assert (never.returncode, never.stderr) == (1, "mpiboot: job is failed, exit 3\n")
    # delete
    gone = start("wait", "--for", "deleted", "job", *there)
    assert mpiboot("delete", "job", *there).stdout == "job is gone (kubernetes)\n"
    assert gone.wait(PATIENCE) == 0


def test_a_watch_outlives_a_cluster_that_is_away(
    world: World, api_server: Kubernetes, user: dict[str, str], start: Callable[..., subprocess.Popen[str]],
    tmp_path: Path,
) -> None:  # fmt: skip
    config = yaml.safe_load(api_server.kubeconfig.read_text())
    cable = Cable(config["clusters"][0]["cluster"]["server"])
    try:
        config["clusters"][0]["cluster"]["server"] = cable.url
        (tmp_path / "config").write_text(json.dumps(config))
        user["KUBECONFIG"] = str(tmp_path / "config")
        world.submit()
        world.started()
        eventually("a state", lambda: world.status().get("state") == "Waiting")
        watches = start("status", "-w", "job", "-n", world.namespace)
        assert watches.stdout
        assert "Waiting" in watches.stdout.readline()
        cable.plugged = False
        assert watches.stderr
        assert "the cluster does not answer" in watches.stderr.readline()
        world.run_workers(ready=True)
        fails(world, 3)
        cable.plugged = True
        assert watches.wait(PATIENCE) == 0
        assert "Failed" in watches.stdout.read()
    finally:
        cable.close()


def test_commands_that_read_find_a_job_of_the_cluster_and_those_that_end_jobs_do_not(
    world: World, mpiboot: Mpiboot, user: dict[str, str], tmp_path: Path
) -> None:
    found = subprocess.run([kubectl(), "config", "view", "--raw", "-o", "json"], env=user, capture_output=True,
                           text=True, check=True).stdout  # fmt: skip
    config = json.loads(found)
    theirs = {"name": "theirs", "context": {**config["contexts"][0]["context"], "namespace": world.namespace}}
    config["contexts"].append(theirs)
    other = dict(config, **{"current-context": "theirs"})
    (tmp_path / "config").write_text(json.dumps(other))
    user["KUBECONFIG"] = str(tmp_path / "config")
    world.submit()
    world.started()
    assert f"{world.namespace}/job: " in mpiboot("status", "job").stdout
    assert mpiboot("wait", "--for", "running", "--timeout", "0", "job").returncode == 124
    refused = mpiboot("delete", "job")
    assert refused.returncode == 2
    assert "there is no job named job; there is no job at all" in refused.stderr
    assert world.job()
    # --context leads there from another current one
    (tmp_path / "config").write_text(json.dumps(config))
    missing = mpiboot("status", "job")
    assert missing.returncode == 2
    assert "there is no job named job; there is no job at all; on the cluster: there is no job named job in" in (
        missing.stderr
    )
    assert f"{world.namespace}/job: " in mpiboot("status", "job", "--context", "theirs").stdout
    unknown = mpiboot("ps", "--context", "nowhere")
    assert unknown.returncode == 2
    assert "Traceback" not in unknown.stderr


def test_kubectl_has_the_same_commands(world: World, user: dict[str, str], tmp_path: Path) -> None:
    plugin = tmp_path / "kubectl-mpi"
    plugin.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'import sys; from mpiboot.cli.kubectl import main; "
                      "sys.exit(main())' \"$@\"\n")  # fmt: skip
    plugin.chmod(0o755)
    user["PATH"] = f"{tmp_path}:{user['PATH']}"

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [kubectl(), "mpi", *words]
        return subprocess.run(command, env=user, capture_output=True, text=True, timeout=PATIENCE)

    world.submit(name="mine")
    (listed,) = printed(run("ps", "-n", world.namespace, "-o", "json"))["jobs"]
    assert (listed["name"], listed["engine"]) == ("mine", "kubernetes")
    assert run("ps", "--help").stdout.startswith("Usage: kubectl mpi ps ")
    wrong = run("status", "-n", world.namespace)
    assert wrong.returncode != 0
    assert "Missing argument 'JOB'; see: kubectl mpi status --help" in wrong.stderr
    assert run("delete", "mine", "-n", world.namespace).stdout == "mine is gone (kubernetes)\n"
    # Without a namespace it is the context's, and not this machine.
    assert "kubernetes" not in run("ps").stdout
    nothing = run("delete", "mine")
    assert "there is no job named mine in namespace default" in nothing.stderr
