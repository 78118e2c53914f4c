"""Every command on jobs, on containers and on processes: one table. The node's turn is in tests/e2e."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.engines.conftest import Running

    Mpiboot = Callable[..., subprocess.CompletedProcess[str]]

KEYS = {"name", "engine", "namespace", "run", "state", "exitCode", "reason", "workers", "image", "created", "ended"}


@dataclass
class Place:
    """One engine, with the commands as a user types them."""

    engine: str
    image: str
    name: str
    _mpiboot: Mpiboot

    def __call__(self, command: str, *argv: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return self._mpiboot(command, "--engine", self.engine, *argv, input=stdin)

    def json(self, command: str, *argv: str) -> Any:  # noqa: ANN401 (JSON)
        done = self(command, "-o", "json", *argv)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["version"] == 1
        return found

    def jobs(self, *argv: str) -> list[Any]:
        return [job for job in self.json("ps", *argv)["jobs"] if job["name"] == self.name]


@pytest.fixture(params=["docker", "local"])
def place(
    request: pytest.FixtureRequest, mpiboot: Mpiboot, name: str, program: Callable[[str], str], state: object
) -> Place:
    assert state  # of this test alone
    program("sshd")
    image = "this-machine" if request.param == "local" else request.getfixturevalue("image")("openmpi")
    if request.param == "docker":
        request.getfixturevalue("nothing_left")
    return Place(request.param, image, name, mpiboot)


def test_a_running_job_is_listed_shown_and_ended(
    place: Place, start: Callable[..., Running], manifest: Callable[..., str]
) -> None:
    job = manifest("echo of the launcher; exec sleep 300", place.image, workers=2)
    running = start("run", "--engine", place.engine, "-f", job)
    running.wait_for("of the launcher")
    running.wait_for("worker-1 | mpiboot: SSH listens")
    # ps
    (listed,) = place.jobs()
    assert set(listed) == KEYS
    assert (listed["engine"], listed["state"], listed["workers"]) == (place.engine, "running", 2)
    assert (listed["exitCode"], listed["ended"], listed["namespace"]) == (None, None, "")
    # status
    shown = place.json("status", place.name)
    assert shown["job"] == listed
    assert [(each["name"], each["state"]) for each in shown["processes"]] == [
        ("launcher", "running"), ("worker-0", "running"), ("worker-1", "running")
    ]  # fmt: skip
    assert all(each["id"] for each in shown["processes"])
    assert "worker-0 started" in [each["event"] for each in shown["timeline"]]
    assert f"{place.name} ({place.engine}): running\n" in place("status", place.name).stdout
    # events
    events = place.json("events", place.name)["events"]
    assert ("Started", "launcher", "Normal") in [(each["reason"], each["object"], each["type"]) for each in events]
    # logs
    assert place("logs", place.name).stdout == "of the launcher\n"
    one = place("logs", "--worker", "1", place.name)
    assert "SSH listens" in one.stdout + one.stderr
    assert "of the launcher" not in one.stdout
    wrong = place("logs", "--worker", "2", place.name)
    assert wrong.returncode == 2
    assert wrong.stderr == (
        f"mpiboot: {place.name} has no running worker-2: it has a launcher and worker-0 to worker-1\n"
    )
    # wait
    assert place("wait", "--for", "running", place.name).returncode == 0
    late = place("wait", "--for", "succeeded", "--timeout", "0", place.name)
    assert (late.returncode, late.stderr) == (
        124, f"mpiboot: {place.name} is running after 0 s; waited for: succeeded\n"
    )  # fmt: skip
    # delete, seen by those that wait for it
    waits = start("wait", "--for", "deleted", "--engine", place.engine, place.name)
    follows = start("logs", "-f", "--engine", place.engine, place.name)
    follows.wait_for("of the launcher")
    watches = start("status", "-w", "--engine", place.engine, place.name)
    watches.wait_for("running")
    assert place("delete", place.name).stdout == f"{place.name} is gone ({place.engine})\n"
    assert running.end() == 143
    assert waits.end() == follows.end() == watches.end() == 0
    assert place.jobs("-a") == []


def test_a_job_that_has_ended_is_still_known(
    place: Place, start: Callable[..., Running], manifest: Callable[..., str], mpiboot: Mpiboot
) -> None:
    job = manifest("echo its output; echo its error >&2; exit 7", place.image)
    running = start("run", "--engine", place.engine, "-f", job)
    assert running.end() == 7
    assert place.jobs() == []
    (kept,) = place.jobs("-a")
    assert (kept["state"], kept["exitCode"], kept["engine"]) == ("failed", 7, place.engine)
    assert kept["ended"] >= kept["created"]
    printed = place("logs", place.name)
    assert printed.stdout == "its output\n"
    assert "its error\n" in printed.stderr
    assert place("logs", "-f", "-q", place.name).stdout == "its output\n"
    assert place("status", place.name).stdout.startswith(f"{place.name} ({place.engine}): failed, exit 7\n")
    last = place.json("events", place.name)["events"][-1]
    assert (last["reason"], last["message"], last["type"]) == ("Ended", "exit code 7", "Warning")
    # Without an engine the command finds it, too.
    assert mpiboot("wait", place.name).returncode == 7
    assert place("wait", "--for", "ended", place.name).returncode == 0
    never = place("wait", "--for", "succeeded", place.name)
    assert (never.returncode, never.stderr) == (1, f"mpiboot: {place.name} is failed, exit 7\n")
    shell = place("shell", place.name, "--", "true")
    assert shell.returncode == 2
    assert f"{place.name} has ended (failed, exit 7)" in shell.stderr
    assert place("delete", place.name).returncode == 0
    assert place.jobs("-a") == []


def test_nothing_is_kept_on_request_and_nothing_of_a_job_that_did_not_begin(
    place: Place, manifest: Callable[..., str], start: Callable[..., Running]
) -> None:
    first = start("run", "--no-keep", "--engine", place.engine, "-f", manifest("echo up; exec sleep 300", place.image))
    first.wait_for("up")
    assert place("logs", place.name).stdout == "up\n"
    second = start("run", "--engine", place.engine, "-f", manifest("true", place.image))
    assert second.end() == 2  # the name is in use
    assert [job["state"] for job in place.jobs("-a")] == ["running"]
    first.process.terminate()
    assert first.end() == 143
    assert place.jobs("-a") == []


def test_secrets_of_the_environment_are_not_kept(place: Place, state: Any, mpiboot: Mpiboot) -> None:  # noqa: ANN401
    words = ["--engine", place.engine, "--name", place.name, "-e", "TOKEN=s3cr3t", "-q"]
    image = [place.image] if place.engine == "docker" else []
    done = mpiboot("run", *words, "-n", "1", *image, "--", "sh", "-c", "test s3cr3t = $TOKEN && echo it was there")
    assert (done.returncode, done.stdout) == (0, "it was there\n"), done.stderr
    assert len(place.jobs("-a")) == 1
    kept = [path for path in (state / "state" / "mpiboot" / "records").rglob("*") if path.is_file()]
    assert kept
    assert [path for path in kept if b"s3cr3t" in path.read_bytes()] == []


def test_a_command_runs_in_a_container_of_the_job(
    place: Place, start: Callable[..., Running], manifest: Callable[..., str]
) -> None:
    running = start("run", "--engine", place.engine, "-f", manifest("echo up; exec sleep 300", place.image))
    running.wait_for("up")
    if place.engine == "local":
        refused = place("shell", place.name, "0", "--", "true")
        assert refused.returncode == 2
        assert "this shell is where worker-0 runs" in refused.stderr
        return
    done = place("shell", place.name, "0", "--", "sh", "-c", "hostname; cat; echo error >&2; exit 5", stdin="input")
    assert (done.returncode, done.stdout, done.stderr) == (5, f"{place.name}-worker-0\ninput", "error\n")
    assert place("shell", place.name, "--", "hostname").stdout == f"{place.name}-launcher\n"
    wrong = place("shell", place.name, "4")
    assert wrong.returncode == 2
    assert "has no running worker-4: it has a launcher and worker-0" in wrong.stderr


def try_out(terminal: Terminal, host: str) -> None:
    """Use a shell on a terminal of 33 rows and 99 columns."""
    terminal.type("echo size $(stty size) on $(hostname)\n")
    terminal.shows(f"size 33 99 on {host}")
    terminal.type("echo sleeps; sleep 100\n")
    terminal.shows("\rsleeps")
    terminal.type("\x03")  # Ctrl-C is for the program there
    terminal.shows("^C")
    terminal.type("exit 6\n")
    assert terminal.end() == 6


def test_a_shell_is_at_the_users_terminal(
    place: Place, start: Callable[..., Running], manifest: Callable[..., str]
) -> None:
    if place.engine == "local":
        return  # it has no shells: see above
    running = start("run", "--engine", place.engine, "-f", manifest("echo up; exec sleep 300", place.image))
    running.wait_for("up")
    argv = [sys.executable, "-m", "mpiboot", "shell", "--engine", place.engine, place.name, "0"]
    with Terminal(argv, rows=33, columns=99) as terminal:
        try_out(terminal, f"{place.name}-worker-0")


def test_a_detached_job_goes_on_in_the_background(
    place: Place, start: Callable[..., Running], manifest: Callable[..., str], mpiboot: Mpiboot, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    # On Docker the job does not see this machine's files, so it is let go by a command in it.
    gate = str(go) if place.engine == "local" else "/tmp/go"
    job = manifest(f"test -p {gate} || mkfifo {gate}; echo up; read line < {gate}; echo $line; exit 4", place.image)
    begun = mpiboot("run", "--detach", "--engine", place.engine, "-f", job)
    assert (begun.returncode, begun.stdout) == (0, f"{place.name}\n"), begun.stderr
    assert f"the job goes on: mpiboot logs -f {place.name}; mpiboot delete {place.name}\n" in begun.stderr
    follows = start("logs", "-f", "-q", place.name)
    follows.wait_for("up")
    assert [job["state"] for job in place.jobs()] == ["running"]
    waits = start("wait", place.name)
    if place.engine == "local":
        go.write_text("gone on\n")
    else:
        assert place("shell", place.name, "--", "sh", "-c", f"echo gone on > {gate}").returncode == 0
    assert waits.end() == 4
    assert follows.end() == 0
    assert place("logs", "-q", place.name).stdout == "up\ngone on\n"


def test_a_detached_job_that_cannot_start_says_so(
    place: Place, manifest: Callable[..., str], mpiboot: Mpiboot, start: Callable[..., Running]
) -> None:
    first = start("run", "--engine", place.engine, "-f", manifest("echo up; exec sleep 300", place.image))
    first.wait_for("up")
    second = mpiboot("run", "-d", "--engine", place.engine, "-f", manifest("true", place.image))
    assert (second.returncode, second.stdout) == (2, "")
    assert f"a job named {place.name} is running" in second.stderr
    assert [job["state"] for job in place.jobs("-a")] == ["running"]


def test_a_detached_job_is_deleted(place: Place, manifest: Callable[..., str], mpiboot: Mpiboot) -> None:
    job = manifest("echo up; exec sleep 300", place.image)
    assert mpiboot("run", "-d", "--engine", place.engine, "-f", job).returncode == 0
    assert place("delete", place.name).returncode == 0
    assert place.jobs("-a") == []


def test_a_killed_run_leaves_its_output(
    place: Place, start: Callable[..., Running], manifest: Callable[..., str]
) -> None:
    running = start("run", "--engine", place.engine, "-f", manifest("echo before; exec sleep 300", place.image))
    running.wait_for("before")
    running.process.kill()
    running.end()
    assert place("logs", place.name).stdout == "before\n"
    (job,) = place.jobs()
    # Containers go on without it; processes of this machine end with it.
    assert job["state"] == ("running" if place.engine == "docker" else "left-over")
    assert place("delete", place.name).returncode == 0
    assert place.jobs("-a") == []


def test_prune_removes_what_is_kept(place: Place, start: Callable[..., Running], manifest: Callable[..., str]) -> None:
    assert start("run", "--engine", place.engine, "-f", manifest("true", place.image)).end() == 0
    argv = [sys.executable, "-m", "mpiboot", "prune"]
    kept = subprocess.run([*argv, "--older-than", "1h"], capture_output=True, text=True, check=True)
    assert kept.stdout == "removed 0 jobs, 0.0 MB\n"
    assert len(place.jobs("-a")) == 1
    listed = subprocess.run([*argv, "--dry-run", "-o", "json"], capture_output=True, text=True, check=True)
    assert [set(job) for job in json.loads(listed.stdout)["jobs"]] == [KEYS]
    gone = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert gone.stdout == f"{place.name} ({place.engine})\nremoved 1 jobs, 0.0 MB\n"
    assert place.jobs("-a") == []
