"""`mpiboot run --engine local`: real sshd, real mpirun, no container engine."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

import pytest

from mpiboot.engines.local import state as states

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from tests.engines.conftest import Running

LOCAL = ("--engine", "local")


@pytest.fixture(autouse=True)
def needed(program: Callable[[str], str]) -> None:
    program("sshd")
    program("ssh")


@pytest.fixture
def mpirun(program: Callable[[str], str]) -> None:
    """An MPI in the environment that the tests run in, or on the machine."""
    if not which("mpirun", path=str(Path(sys.executable).parent)):
        program("mpirun")
    pytest.importorskip("mpi4py")


@pytest.fixture
def run(
    mpiboot: Callable[..., subprocess.CompletedProcess[str]], state: Path, no_traces: Callable[[], None]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`mpiboot run` on this machine; nothing may be left of it."""
    assert state.is_dir()

    def local(*argv: str, **options: object) -> subprocess.CompletedProcess[str]:
        done = mpiboot("run", *LOCAL, *argv, **options)
        no_traces()
        return done

    return local


@pytest.mark.usefixtures("mpirun")
def test_pi_is_computed_by_ranks_spread_over_the_workers(
    run: Callable[..., subprocess.CompletedProcess[str]], pi: str, tmp_path: Path
) -> None:
    picture = tmp_path / "timeline.svg"
    done = run("-n", "4", "--workers", "2", "-v", "--timeline", str(picture), "--", "python3", "-c", pi)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"rank (\d) host (?:\S+) worker (\d) pi (\S+)", done.stdout)
    assert sorted(rank for rank, *_ in found) == ["0", "1", "2", "3"]
    assert sorted(worker for _, worker, _ in found) == ["0", "0", "1", "1"]
    assert {value for *_, value in found} == {"3.14159265"}
    assert re.search(r"^ *[\d.]+ s .* ready$", done.stderr, re.MULTILINE)
    assert "<svg" in picture.read_text()[:200]


@pytest.mark.usefixtures("mpirun")
def test_ranks_agree_about_who_shares_a_host(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    # One rank a worker is where it went wrong while all workers had this machine's name.
    program = "from mpi4py import MPI; w = MPI.COMM_WORLD; print(w.Split_type(MPI.COMM_TYPE_SHARED).size, w.reduce(1))"
    done = run("-n", "2", "--workers", "2", "--", "python3", "-c", program)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["1 2", "1 None"]


@pytest.mark.usefixtures("mpirun")
def test_two_jobs_at_once_do_not_meet(start: Callable[..., Running], pi: str, no_traces: Callable[[], None]) -> None:
    jobs = [start("run", *LOCAL, "-n", "2", "--workers", "2", "--", "python3", "-c", pi) for _ in range(2)]
    assert [job.end(120) for job in jobs] == [0, 0]
    assert all(len(job.out) == 2 for job in jobs)
    no_traces()


def test_a_failed_launcher_is_started_again_as_often_as_the_user_or_the_manifest_says(
    run: Callable[..., subprocess.CompletedProcess[str]], manifest: Callable[..., str]
) -> None:
    job = manifest("echo try; exit 3", backoffLimit=None)
    done = run("-f", job)
    assert (done.returncode, done.stdout) == (3, "try\n")
    said = "is not started again on this machine; a cluster would do so up to 6 times: --retries 6\n"
    assert f"mpiboot: the launcher failed with exit code 3 and {said}" in done.stderr
    done = run("-f", job, "--retries", "1")
    assert (done.returncode, done.stdout) == (3, "try\ntry\n")
    assert "--retries" not in done.stderr
    assert run("-f", manifest("echo try; exit 3", backoffLimit=1)).stdout == "try\ntry\n"


def test_a_warning_names_the_image_and_all_fields_that_have_no_effect(
    run: Callable[..., subprocess.CompletedProcess[str]], manifest: Callable[..., str]
) -> None:
    job = manifest("cat /etc/mpi/hostfile", "company/image:1", worker={"resources": {"limits": {"cpu": 1}}},
                   pod={"nodeSelector": {"a": "b"}})  # fmt: skip
    done = run("-f", job)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"t-\w+-worker-0\.\S+ slots=1\n", done.stdout)
    assert "the image company/image:1 is not used" in done.stderr
    assert "ignores: resources (worker); nodeSelector (launcher)" in done.stderr


def test_the_exit_code_is_the_launcher_s(
    run: Callable[..., subprocess.CompletedProcess[str]], manifest: Callable[..., str]
) -> None:
    done = run("-q", "-f", manifest("printf out; printf err >&2; exit 7"))
    assert (done.returncode, done.stdout) == (7, "out")
    assert "\nerr" in done.stderr
    assert "worker-0 |" not in done.stderr


def test_ctrl_c_ends_the_job_gracefully(
    start: Callable[..., Running], manifest: Callable[..., str], no_traces: Callable[[], None]
) -> None:
    script = "trap 'echo got TERM; exit' TERM; echo up; while :; do sleep 0.1; done"
    running = start("run", *LOCAL, "-f", manifest(script))
    running.wait_for("up")
    running.process.send_signal(signal.SIGINT)
    assert running.end() == 130
    assert "got TERM\n" in running.out, running.err
    no_traces()


def test_a_second_ctrl_c_kills_it(
    start: Callable[..., Running], manifest: Callable[..., str], no_traces: Callable[[], None]
) -> None:
    running = start("run", *LOCAL, "-f", manifest("trap 'echo not yet' TERM; echo up; while :; do sleep 0.1; done"))
    running.wait_for("up")
    running.process.send_signal(signal.SIGINT)
    running.wait_for("not yet")
    running.process.send_signal(signal.SIGINT)
    assert running.end() == 130
    no_traces()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_terminal_that_closes_ends_the_job(
    start: Callable[..., Running], manifest: Callable[..., str], no_traces: Callable[[], None], number: signal.Signals
) -> None:
    running = start("run", *LOCAL, "-f", manifest("echo up; exec sleep 100"))
    running.wait_for("up")
    running.process.send_signal(number)
    assert running.end() == 128 + number
    no_traces()


def test_a_killed_parent_takes_everything_with_it(
    start: Callable[..., Running], manifest: Callable[..., str], state: Path, no_traces: Callable[[], None],
    mpiboot: Callable[..., subprocess.CompletedProcess[str]], name: str,
) -> None:  # fmt: skip
    running = start("run", *LOCAL, "-f", manifest("setsid sleep 100 & echo up; exec sleep 100", workers=2))
    running.wait_for("up")
    running.process.kill()
    running.end()
    row = next((line for line in mpiboot("ps", *LOCAL).stdout.splitlines() if line.startswith(name)), "left over")
    assert "left over" in row
    mpiboot("delete", name, *LOCAL)
    assert state.is_dir()
    no_traces()


def test_a_killed_guard_takes_its_worker_with_it_when_the_job_ends(
    start: Callable[..., Running], manifest: Callable[..., str], state: Path, no_traces: Callable[[], None]
) -> None:
    running = start("run", *LOCAL, "-f", manifest("echo up; exec sleep 100"))
    running.wait_for("up")
    running.wait_for("SSH listens")
    guard = next(pid for pid, command in commands(running.process.pid) if "guard" in command and " worker " in command)
    os.kill(guard, signal.SIGKILL)
    running.wait_for("worker-0 ended with exit code 137")
    running.process.send_signal(signal.SIGTERM)
    assert running.end() == 143
    assert state.is_dir()
    no_traces()


def test_jobs_are_listed_read_and_deleted_from_another_terminal(
    start: Callable[..., Running], manifest: Callable[..., str], name: str,
    mpiboot: Callable[..., subprocess.CompletedProcess[str]], no_traces: Callable[[], None],
) -> None:  # fmt: skip
    running = start("run", *LOCAL, "-f", manifest("echo to stdout; echo to stderr >&2; exec sleep 100"))
    running.wait_for("to stderr")
    rows = mpiboot("ps", *LOCAL).stdout.splitlines()
    assert rows[0].split() == ["JOB", "ENGINE", "STATE", "WORKERS", "AGE", "IMAGE"]
    assert re.fullmatch(rf"{name} +local +running +1 +\d+s", rows[1])
    printed = mpiboot("logs", name, *LOCAL)
    assert printed.stdout == "to stdout\n"
    assert "to stderr\n" in printed.stderr
    follower = start("logs", "-f", name, *LOCAL)
    follower.wait_for("to stdout")
    second = mpiboot("run", *LOCAL, "-f", manifest("true"))
    assert second.returncode == 2
    assert f"a job named {name} is running (process {running.process.pid})" in second.stderr
    missing = mpiboot("delete", f"{name}x", *LOCAL)
    assert missing.returncode == 2
    assert missing.stderr == f"mpiboot: there is no job named {name}x; did you mean {name}?\n"
    assert mpiboot("delete", name, *LOCAL).returncode == 0
    assert running.end() == 143
    assert follower.end() == 0
    no_traces()


def test_an_entry_of_a_process_that_is_gone_does_not_hold_the_name(
    run: Callable[..., subprocess.CompletedProcess[str]], manifest: Callable[..., str], name: str, state: Path
) -> None:
    # Our own number with another start: as if the number had been given to a new process.
    record = states.Record(name, os.getpid(), "another boot:1", 0.0, 1, "")
    assert states.enter(record).is_relative_to(state)
    assert run("-q", "-f", manifest("echo ran")).stdout == "ran\n"


def test_an_unreadable_entry_does_not_disturb(
    run: Callable[..., subprocess.CompletedProcess[str]], mpiboot: Callable[..., subprocess.CompletedProcess[str]],
    manifest: Callable[..., str], name: str, state: Path,
) -> None:  # fmt: skip
    broken = state / "state" / "mpiboot" / "jobs" / name
    broken.mkdir(parents=True)
    (broken / "job.json").write_text(json.dumps({"job": name})[:-3])
    assert mpiboot("ps", *LOCAL).returncode == 0
    assert run("-q", "-f", manifest("echo ran")).stdout == "ran\n"


def test_missing_programs_are_named_with_what_to_install(
    mpiboot: Callable[..., subprocess.CompletedProcess[str]], manifest: Callable[..., str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, no_traces: Callable[[], None],
) -> None:  # fmt: skip
    monkeypatch.setenv("PATH", str(tmp_path))
    done = mpiboot("run", *LOCAL, "-f", manifest("true"))
    if done.returncode == 0 or "ssh (Debian" not in done.stderr:
        pytest.skip("ssh stands beside Python here")
    assert done.returncode == 2
    assert "apt install openssh-client" in done.stderr
    no_traces()


def commands(parent: int) -> list[tuple[int, str]]:
    """The children of a process with their command lines."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if int(fields[1]) == parent:
                found.append((int(entry.name), command))
    return found


def test_a_manifest_needs_no_option(
    run: Callable[..., subprocess.CompletedProcess[str]], manifest: Callable[..., str]
) -> None:
    assert run("-q", manifest("echo ran")).stdout == "ran\n"
