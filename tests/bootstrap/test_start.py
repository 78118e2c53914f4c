"""What the start of process 1 does not import, and how a launch behaves on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.bootstrap.processes import PATIENCE

if TYPE_CHECKING:
    from tests.bootstrap.conftest import Job

# 10 to 200 ms each, in which a job could have started.
SLOW = {"asyncio", "click", "paramiko", "subprocess", "dataclasses", "inspect", "logging", "shutil", "argparse", "json"}


# Modules of the project that each start imports: every one costs a quarter of a millisecond.
MOST_OF_A_LAUNCH, MOST_OF_A_WORKER = 43, 21


def modules(errors: str) -> set[str]:
    lines = (line for line in errors.splitlines() if line.startswith("import time:"))
    return {line.rpartition("|")[2].strip() for line in lines}


def imported(errors: str) -> set[str]:
    return {name.partition(".")[0] for name in modules(errors)}


def of_the_project(errors: str) -> list[str]:
    return sorted(name for name in modules(errors) if name.partition(".")[0] == "mpiboot")


def test_a_launch_imports_nothing_slow_before_its_command(job: Job) -> None:
    job.start(0, 1)
    launch = job.launch("sh", "-c", "echo command runs >&2", env={"PYTHONPROFILEIMPORTTIME": "1"})
    assert launch.ends() == 0
    before = launch.stderr.partition("command runs")[0]
    assert "mpiboot" in imported(before)
    assert imported(before) & SLOW == set()
    assert len(of_the_project(before)) <= MOST_OF_A_LAUNCH, of_the_project(before)


def test_a_worker_imports_nothing_slow_before_its_sshd(job: Job) -> None:
    job.start(0, env={"PYTHONPROFILEIMPORTTIME": "1"})
    before = job.workers[0].stderr.partition("Server listening")[0]
    assert "mpiboot" in imported(before)
    assert imported(before) & (SLOW | {"socket", "threading", "selectors"}) == set()
    assert len(of_the_project(before)) <= MOST_OF_A_WORKER, of_the_project(before)


def on_a_terminal(job: Job, program: str, typed: bytes, after: str) -> tuple[int, str]:
    """Run a launch on a terminal of its own; type that once it said so."""
    job.hostfile.write_text("")
    ours, theirs = pty.openpty()
    files = ("--hostfile", str(job.hostfile), "--ssh-dir", str(job.keys.launcher))
    command = [sys.executable, "-m", "mpiboot", "launch", *files, "--", sys.executable, "-c", program]
    shell = 'exec setsid --ctty "$@"'  # the terminal becomes its own, as `docker run -it` has it
    process = subprocess.Popen(["sh", "-c", shell, "sh", *command], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown, typed_at = "", False
    with suppress(OSError):  # the end of a terminal is an error
        while data := os.read(ours, 4096):
            shown += data.decode()
            if after in shown and not typed_at:
                typed_at = True
                os.write(ours, typed)
    os.close(ours)
    return process.wait(PATIENCE), shown


def test_ctrl_c_reaches_the_command_once(job: Job) -> None:
    """An mpirun that gets it twice does not end its ranks in order."""
    program = (
        "import os, signal, time\n"
        "times = []\n"
        "signal.signal(signal.SIGINT, lambda *_: times.append(1))\n"
        "print('here', flush=True)\n"
        "while not times: time.sleep(0.05)\n"
        "time.sleep(0.5)\n"
        "print('caught', len(times), flush=True)\n"
    )
    code, shown = on_a_terminal(job, program, b"\x03", "here")
    assert code == 0, shown
    assert "caught 1\r\n" in shown


def test_the_command_can_read_the_terminal(job: Job) -> None:
    code, shown = on_a_terminal(job, "print('here', flush=True); print('read', input())", b"hello\n", "here")
    assert code == 0, shown
    assert "read hello" in shown


@pytest.mark.parametrize("command", ["launch", "wait", "hosts", "worker"])
def test_a_wrong_option_is_one_line(job: Job, command: str) -> None:
    process = job.run(command, "--no-such-option")
    assert process.ends() == 2
    assert process.stderr.startswith("mpiboot: unknown option --no-such-option")
    assert process.stderr.count("\n") == 1


def test_a_launch_without_a_command_says_what_to_type(job: Job) -> None:
    launch = job.run("launch")
    assert launch.ends() == 2
    assert "no command to run; write it after the options: mpiboot launch" in launch.stderr
