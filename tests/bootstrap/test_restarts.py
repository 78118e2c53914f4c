"""`mpiboot launch --restarts N`: a command that failed runs again on the same workers, and nothing of it is left."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mpiboot.bootstrap.process import reaper
from mpiboot.bootstrap.run.attempts import LONGEST_PAUSE, QUICK, Attempts, Ended
from tests.bootstrap.processes import eventually

if TYPE_CHECKING:
    from tests.bootstrap.conftest import Job
    from tests.bootstrap.processes import Process

FAILED = Ended(7, "mpirun exited with code 7", 0.3)
SLOW = FAILED._replace(seconds=QUICK)

# -- decisions --


def test_a_crash_loop_is_bounded_and_told() -> None:
    attempts = Attempts(4, frozenset())
    verdicts = [attempts.ended(FAILED) for _ in range(5)]
    assert [verdict.again for verdict in verdicts] == [True, True, True, True, False]
    assert verdicts[-1].text == "attempt 5 of 5 ended after 0.3 s like the four before: mpirun exited with code 7"


def test_only_attempts_that_die_quickly_make_the_pause_grow() -> None:
    attempts = Attempts(20, frozenset())
    ends = [SLOW, SLOW, FAILED, FAILED, FAILED, FAILED, SLOW, FAILED]
    assert [attempts.ended(end).pause for end in ends] == [0, 0, 0, 1, 2, 4, 0, 0]
    assert [attempts.ended(FAILED).pause for _ in range(9)][-1] == LONGEST_PAUSE


def test_attempts_that_end_in_another_way_are_not_alike() -> None:
    attempts = Attempts(9, frozenset())
    attempts.ended(FAILED)
    assert "like" not in attempts.ended(FAILED._replace(code=9)).text
    assert "like the one before" in attempts.ended(FAILED._replace(code=9)).text
    assert "like" not in attempts.ended(SLOW._replace(code=9)).text


def test_a_final_code_and_a_final_cause_end_the_attempts() -> None:
    verdict = Attempts(4, frozenset({7})).ended(FAILED)
    assert (verdict.again, verdict.text.rpartition("; ")[2]) == (False, "code 7 is final (--final-codes)")
    assert not Attempts(4, frozenset()).ended(FAILED._replace(final="it makes no sense")).again


# -- with real workers and each MPI --


def test_a_command_that_fails_runs_again_and_its_ranks_know_the_attempt(any_mpi: Job) -> None:
    program = 'echo "rank of attempt $MPIBOOT_ATTEMPT"; [ "$MPIBOOT_ATTEMPT" -ge 3 ] || exit 7'
    launch = any_mpi.launch("mpirun", "-n", 2, "sh", "-c", program, options=("--restarts", 4))
    assert launch.ends() == 0, launch.stderr
    first = r"attempt 1 of 5 ended after [\d.]+ s: mpirun exited with code 7; attempt 2 starts\n"
    assert re.search(first, launch.stderr), launch.stderr
    assert "attempt 2 of 5 ended after" in launch.stderr
    assert "attempt 3 of 5 succeeded" in launch.stderr
    assert launch.stdout.count("rank of attempt 3") == 2


def test_no_rank_lives_on_when_the_next_attempt_starts(any_mpi: Job, tmp_path: Path) -> None:
    """mpirun is killed, and its ranks ignore SIGTERM."""
    rank = (
        'if [ "$MPIBOOT_ATTEMPT" = 2 ]; then for p in $(cat "$1"/pid.*); do kill -0 "$p" && exit 9; done; exit 0; fi; '
        'trap : TERM HUP; echo $$ > "$1/pid.$$"; echo here; while :; do sleep 0.1; done'
    )
    launch = any_mpi.launch("mpirun", "-n", 4, "setsid", "sh", "-c", rank, "sh", tmp_path, options=("--restarts", 1))
    eventually(lambda: len([path for path in tmp_path.glob("pid.*") if path.read_text()]) == 4)
    [mpirun] = reaper.children(launch.popen.pid)
    os.kill(mpirun, signal.SIGKILL)
    assert launch.ends() == 0, launch.stderr
    assert "mpirun ended by SIGKILL (exit 137); attempt 2 starts" in launch.stderr
    pids = [path.read_text().strip() for path in tmp_path.glob("pid.*")]
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []


def test_another_launch_on_the_same_workers_is_left_alone(openmpi: Job, tmp_path: Path) -> None:
    bystander = openmpi.launch("mpirun", "-n", 2, "sh", "-c", f"echo $$ > {tmp_path}/pid.$PMIX_RANK; exec sleep 600")
    eventually(lambda: len([path for path in tmp_path.glob("pid.*") if path.read_text()]) == 2)
    launch = openmpi.launch("mpirun", "-n", 2, "sh", "-c", "exit $((MPIBOOT_ATTEMPT - 2))", options=("--restarts", 1))
    assert launch.ends() == 0, launch.stderr
    assert bystander.popen.poll() is None
    pids = [path.read_text().strip() for path in tmp_path.glob("pid.*")]
    assert [pid for pid in pids if not Path(f"/proc/{pid}").exists()] == []


def test_the_last_attempt_gives_the_exit_code_and_the_cause(openmpi: Job) -> None:
    launch = openmpi.launch("mpirun", "-n", 2, "sh", "-c", "exit 7", options=("--restarts", 1))
    assert launch.ends() == 7
    last = r"attempt 2 of 2 ended after [\d.]+ s like the one before: mpirun exited with code 7\n"
    assert re.search(last, launch.stderr), launch.stderr


def test_a_final_code_is_not_tried_again(openmpi: Job) -> None:
    options = ("--restarts", 3, "--final-codes", "2,40-44")
    launch = openmpi.launch("mpirun", "-n", 2, "sh", "-c", "exit 42", options=options)
    assert launch.ends() == 42
    assert "attempt 1 of 4 ended" in launch.stderr
    assert "code 42 is final (--final-codes)" in launch.stderr
    assert "attempt 2" not in launch.stderr


def test_a_program_that_does_not_exist_is_not_tried_again(any_mpi: Job) -> None:
    launch = any_mpi.launch("mpirun", "-n", 2, "/no/such/program", options=("--restarts", 3))
    assert launch.ends() != 0
    assert "the program /no/such/program does not exist on" in launch.stderr
    assert "attempt 2 of" not in launch.stderr


def test_a_launcher_that_is_asked_to_end_does_not_start_again(job: Job) -> None:
    job.hostfile.write_text("")
    launch = job.launch("sh", "-c", "echo here; exec sleep 600", options=("--restarts", 3))
    launch.says("here")
    launch.kill()
    assert launch.ends() == 143
    assert "attempt 2 starts" not in launch.stderr


def test_a_signal_ends_the_pause_before_the_next_attempt(job: Job) -> None:
    job.hostfile.write_text("")
    launch = job.launch("false", options=("--restarts", 1000))
    launch.says("starts in 4 s")
    launch.kill()
    assert launch.ends() == 143
    assert "Traceback" not in launch.stderr


def test_a_worker_that_dies_is_waited_for(any_mpi: Job) -> None:
    """Its successor is at another port, as that of a pod is at another address."""
    launch = any_mpi.launch(
        "mpirun", "-n", 4, "sh", "-c", 'echo "here $MPIBOOT_ATTEMPT"; [ "$MPIBOOT_ATTEMPT" = 2 ] || exec sleep 600',
        options=("--restarts", 1),
    )  # fmt: skip
    launch.says("here 1", times=4)
    kill_all_of(any_mpi.workers[1])
    launch.says("attempt 2 starts")
    any_mpi.ports[1] = 2223
    any_mpi.start(1)
    any_mpi.tell(0, 1)
    assert launch.ends() == 0, launch.stderr
    assert launch.stdout.count("here 2") == 4


def kill_all_of(worker: Process) -> None:
    """Kill it with all that it runs, as the end of a container does."""
    for pid in [worker.popen.pid, *reaper.descendants(worker.popen.pid)]:
        reaper.send(pid, signal.SIGKILL)


def test_a_worker_that_does_not_come_back_is_named(openmpi: Job) -> None:
    options = ("--restarts", 3, "--init-timeout", 3)
    launch = openmpi.launch("mpirun", "-n", 4, "sh", "-c", "echo here; exec sleep 600", options=options)
    launch.says("here", times=4)
    openmpi.stop(1)
    assert launch.ends() == 124
    assert f"{openmpi.name(1)} at {openmpi.addresses[1]}:2222  connection refused" in launch.stderr


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--restarts", "-1", "--restarts must be 0 or more (restarts), is -1"),
        ("--restarts", "often", "--restarts must be a whole number (restarts), is 'often'"),
        ("--final-codes", "0", "--final-codes must be exit codes from 1 to 255, like 2,64-78, is '0'"),
        ("--final-codes", "9-2", "--final-codes must be exit codes"),
        ("--final-codes", "x", "--final-codes must be exit codes"),
    ],
)
def test_bad_numbers_are_named(job: Job, option: str, value: str, message: str) -> None:
    launch = job.launch("true", options=(option, value))
    assert launch.ends() == 2
    assert message in launch.stderr
