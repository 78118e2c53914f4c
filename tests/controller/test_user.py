"""The command line against a cluster: run, status, logs, delete. Pods have no output here: no kubelet runs them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cable import Cable
from tests.controller.conftest import PATIENCE, eventually, mpi_job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cluster.fixtures import Kubernetes

    from tests.controller.conftest import World

    Command = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def cable(api_server: Kubernetes) -> Iterator[Cable]:
    config = yaml.safe_load(api_server.kubeconfig.read_text())
    made = Cable(config["clusters"][0]["cluster"]["server"])
    yield made
    made.close()


@pytest.fixture
def command(api_server: Kubernetes, cable: Cable, tmp_path: Path) -> Iterator[Command]:
    """Starts `mpiboot ...` for a user whose kubeconfig is the administrator's, and leads through the cable."""
    running: list[subprocess.Popen[str]] = []
    config = yaml.safe_load(api_server.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = cable.url
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(config))

    def start(*argv: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
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
    assert world.events("ValidationWarning") == []
    eventually("no job", lambda: world.get("MPIJob", "job") is None)


def test_the_exit_code_outlives_the_launchers_pod(world: World, command: Command, manifest: str) -> None:
    process = command("run", "--engine=kubernetes", "-f", manifest)
    world.started()
    world.run_workers(ready=True)
    pod = world.launcher_pod()
    state = {"terminated": {"exitCode": 7, "reason": "Error"}}
    container = {"name": "main", "image": "x", "imageID": "x", "ready": False, "restartCount": 0, "state": state}
    process.send_signal(signal.SIGSTOP)
    world.phase(pod, "Failed", containerStatuses=[container])
    eventually("the reason", lambda: "exit code 7" in (world.status().get("reason") or ""))
    world.client.do("DELETE", world.path("Pod", pod["metadata"]["name"]), {"gracePeriodSeconds": 0})
    world.launcher_ends("Failed", failed=1, reason="BackoffLimitExceeded")
    eventually("its failure", lambda: world.condition("Failed"))
    process.send_signal(signal.SIGCONT)
    assert ends(process)[0] == 7


def waits_for(process: subprocess.Popen[str], text: str) -> str:
    """The line of stderr that holds a text, once it comes."""
    assert process.stderr
    lines = []
    for line in process.stderr:
        lines.append(line)
        if text in line:
            return line
    pytest.fail(f"no line with {text!r}: {''.join(lines)}", pytrace=False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_job(world: World, command: Command, manifest: str, number: signal.Signals) -> None:
    process = command("run", "--engine=kubernetes", "-f", manifest)
    world.started()
    waits_for(process, "Waiting")
    process.send_signal(number)
    code, _, err = ends(process)
    assert code == 128 + number
    assert "Traceback" not in err
    assert world.get("MPIJob", "job") is None


def test_a_signal_that_is_ignored_stays_ignored(world: World, command: Command, manifest: str) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        process = command("run", "--engine=kubernetes", "-f", manifest)
    finally:
        signal.signal(signal.SIGHUP, before)
    world.started()
    process.send_signal(signal.SIGHUP)
    world.run_workers(ready=True)
    waits_for(process, "2/2 workers ready")
    assert world.job()
    process.send_signal(signal.SIGTERM)
    assert ends(process)[0] == 143


def test_a_cluster_that_is_away_for_a_while_is_waited_for(
    world: World, command: Command, manifest: str, cable: Cable
) -> None:
    process = command("run", "--engine=kubernetes", "-f", manifest)
    world.started()
    waits_for(process, "Waiting")
    uid = world.job()["metadata"]["uid"]
    cable.plugged = False
    assert "the job goes on" in waits_for(process, "the cluster does not answer")
    eventually("three more tries", lambda: cable.refused > 3)
    cable.plugged = True
    waits_for(process, "the cluster answers again after")
    assert world.job()["metadata"]["uid"] == uid
    world.run_workers(ready=True)
    world.launcher_ends("Complete")
    code, _, err = ends(process)
    assert code == 0
    assert "does not answer" not in err
    assert world.get("MPIJob", "job") is None


def test_a_job_that_is_to_end_while_the_cluster_is_away_is_deleted_when_it_answers(
    world: World, command: Command, manifest: str, cable: Cable
) -> None:
    process = command("run", "--engine=kubernetes", "-f", manifest)
    world.started()
    waits_for(process, "Waiting")
    cable.plugged = False
    waits_for(process, "the cluster does not answer")
    process.send_signal(signal.SIGTERM)
    cable.refused = 0
    eventually("tries to delete it", lambda: cable.refused > 3)
    cable.plugged = True
    assert ends(process)[0] == 143
    assert world.get("MPIJob", "job") is None


def test_a_second_signal_quits_at_once_and_names_what_is_left(
    world: World, command: Command, manifest: str, cable: Cable
) -> None:
    process = command("run", "--engine=kubernetes", "-f", manifest)
    world.started()
    waits_for(process, "Waiting")
    cable.plugged = False
    process.send_signal(signal.SIGINT)
    waits_for(process, "press Ctrl-C once more")
    process.send_signal(signal.SIGINT)
    code, _, err = ends(process)
    assert code == 130
    assert "Traceback" not in err
    assert f"mpiboot delete job --engine kubernetes -n {world.namespace}" in err
    assert world.job()


def test_a_job_that_another_user_replaces_is_left_alone(world: World, command: Command, manifest: str) -> None:
    process = command("run", "--engine=kubernetes", "-f", manifest)
    world.started()
    waits_for(process, "Waiting")
    process.send_signal(signal.SIGSTOP)
    world.delete("MPIJob", "job")
    eventually("no job", lambda: world.get("MPIJob", "job") is None)
    theirs = world.submit()["metadata"]["uid"]
    process.send_signal(signal.SIGCONT)
    code, _, err = ends(process)
    assert code == 143
    assert f"no MPIJob job in namespace {world.namespace}" in err
    assert "it was deleted while it ran" in err
    assert world.job()["metadata"]["uid"] == theirs


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
    assert re.search(r"^  worker-1  pending: Unschedulable: 0/3 nodes  \(job-worker-1\)$", out, re.MULTILINE), out
    assert "held back until all workers are ready" in out
    assert "created" in out.partition("timeline")[2]


def test_jobs_of_a_namespace_are_listed(world: World, command: Command) -> None:
    world.submit(name="first")
    world.submit(name="second", workers=3)
    eventually("their states", lambda: all(world.status(name).get("state") for name in ("first", "second")))
    code, out, _ = ends(command("ps", "--engine=kubernetes", "-n", world.namespace))
    assert code == 0
    rows = [line.split() for line in out.splitlines()]
    assert rows[0] == ["JOB", "ENGINE", "STATE", "WORKERS", "AGE", "IMAGE"]
    assert sorted((row[0], row[1], row[3], row[5]) for row in rows[1:]) == [
        ("first", "kubernetes", "2", "mpi-image"), ("second", "kubernetes", "3", "mpi-image")
    ]  # fmt: skip


def test_a_misspelt_job_is_answered_with_the_nearest_name(world: World, command: Command) -> None:
    world.submit(name="training")
    code, _, err = ends(command("delete", "trainin", "--engine=kubernetes", "-n", world.namespace))
    assert code == 2
    assert err == f"mpiboot: there is no job named trainin in namespace {world.namespace}; did you mean training?\n"


def test_a_job_that_is_not_elastic_keeps_its_workers(world: World, command: Command) -> None:
    world.submit()
    code, _, err = ends(command("scale", "job", "3", "--engine=kubernetes", "-n", world.namespace))
    assert code == 2
    assert "job is not elastic" in err
    assert world.job()["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 2


def test_scale_says_first_that_kueue_starts_the_job_again(world: World, command: Command) -> None:
    job = mpi_job()
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "night"}
    words = ["horovodrun", "-np", "1", "--host-discovery-script", "/etc/mpi/discover_hosts.sh", "true"]
    replicas = job["spec"]["mpiReplicaSpecs"]
    launcher = replicas["Launcher"]["template"]["spec"]["containers"][0]
    replicas["Launcher"]["template"] = {"spec": {"containers": [{**launcher, "command": words}]}}
    world.create("MPIJob", job)
    code, out, err = ends(command("scale", "job", "3", "--engine=kubernetes", "-n", world.namespace))
    assert (code, out) == (0, "job: 2 -> 3 workers (kubernetes)\n")
    assert err == (
        "mpiboot: job is in Kueue's queue night: Kueue suspends a job that is resized, which ends all its pods, and "
        "starts it again when the queue has room for 3 workers\n"
    )
    assert world.job()["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 3
    code, _, err = ends(command("scale", "job", "3", "--engine=kubernetes", "-n", world.namespace))
    assert (code, err) == (0, "")


@pytest.mark.parametrize("option", ["--namespace", "--context"])
def test_a_namespace_beside_an_engine_of_this_machine_is_refused(command: Command, option: str) -> None:
    code, _, err = ends(command("ps", "--engine=local", option, "default"))
    assert code == 2
    assert err == f"mpiboot: {option} goes with --engine kubernetes; local has no namespaces and contexts\n"


def test_a_cluster_that_is_away_from_the_start_is_one_line(command: Command, cable: Cable, manifest: str) -> None:
    cable.plugged = False
    code, _, err = ends(command("run", "--engine=kubernetes", "-f", manifest))
    assert code == 2
    assert err.startswith("mpiboot: the cluster does not answer: ")
    assert "Traceback" not in err


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
def test_a_job_that_is_not_there_is_an_error(world: World, command: Command, words: Any) -> None:  # noqa: ANN401
    code, _, err = ends(command(*words, "-n", world.namespace))
    assert code == 2
    assert f"there is no job named none in namespace {world.namespace}; there is no job at all" in err


def test_an_invalid_job_is_refused_before_the_cluster_sees_it(world: World, command: Command, tmp_path: Path) -> None:
    job = mpi_job(slotsPerWorker=-1)
    job["metadata"]["namespace"] = world.namespace
    path = tmp_path / "bad.yaml"
    path.write_text(json.dumps(job))
    code, _, err = ends(command("run", "--engine=kubernetes", "-f", str(path)))
    assert code == 2
    assert "spec.slotsPerWorker" in err
    assert world.all("MPIJob") == []
