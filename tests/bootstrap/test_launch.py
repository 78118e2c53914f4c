"""`mpiboot launch` with real workers and every MPI: ranks where they belong, signals, exit codes, nothing left."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mpiboot.bootstrap.process import reaper
from tests.bootstrap.conftest import write_keys
from tests.bootstrap.processes import eventually

if TYPE_CHECKING:
    from tests.bootstrap.conftest import Job

# Where a rank runs: the address that its ssh session came in at. On the launcher there is none.
WHERE = 'set -- $SSH_CONNECTION; echo "rank on ${3:-the launcher}"'


def placed(output: str) -> Counter[str]:
    return Counter(re.findall(r"rank on (.+)", output))


def test_ranks_run_on_both_workers_under_names_that_no_dns_knows(any_mpi: Job) -> None:
    launch = any_mpi.launch("mpirun", "-n", 4, "sh", "-c", WHERE)
    assert launch.ends() == 0, launch.stderr
    assert placed(launch.stdout) == {any_mpi.addresses[0]: 2, any_mpi.addresses[1]: 2}
    assert "2 of 2 workers ready" in launch.stderr
    assert "WARNING" not in launch.stderr


def test_the_slots_of_the_hostfile_are_the_ranks_of_a_bare_mpirun(openmpi: Job) -> None:
    launch = openmpi.launch("mpirun", "sh", "-c", WHERE)
    assert launch.ends() == 0, launch.stderr
    assert placed(launch.stdout) == {openmpi.addresses[0]: 2, openmpi.addresses[1]: 2}


def test_a_program_of_mpi_adds_up_over_both_workers(any_mpi: Job) -> None:
    program = "from mpi4py import MPI; print('sum', MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank + 1))"
    launch = any_mpi.launch("mpirun", "-n", 4, "python", "-c", program)
    assert launch.ends() == 0, launch.stderr
    assert launch.stdout.count("sum 10") == 4


def test_a_script_may_call_mpirun_twice(any_mpi: Job) -> None:
    launch = any_mpi.launch("sh", "-c", f"mpirun -n 2 sh -c '{WHERE}' && mpirun -n 4 sh -c '{WHERE}'")
    assert launch.ends() == 0, launch.stderr
    assert placed(launch.stdout).total() == 6
    assert "the launcher" not in placed(launch.stdout)
    assert "WARNING" not in launch.stderr


def test_a_rank_that_fails_fails_the_launch_with_its_code(openmpi: Job) -> None:
    launch = openmpi.launch("mpirun", "-n", 2, "sh", "-c", "exit 7")
    assert launch.ends() == 7
    assert "mpirun exited with code 7" in launch.stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("sh", "-c", "exit 0"), 0),
        (("sh", "-c", "exit 3"), 3),
        (("sh", "-c", "kill -9 $$"), 137),
        (("sh", "-c", "kill -55 $$"), 183),
        (("sh", "-c", "exit 163"), 163),
        (("sh", "-c", "exit 192"), 192),
        (("no-such-program",), 127),
        (("./no-such-program",), 127),
        (("/etc/passwd",), 126),
        (("/",), 126),
    ],
)
def test_the_exit_code_is_the_commands_own_or_a_shells(job: Job, words: tuple[str, ...], code: int) -> None:
    job.hostfile.write_text("")
    launch = job.launch(*words)
    assert launch.ends() == code, launch.stderr
    assert "Traceback" not in launch.stderr


def test_a_script_without_its_first_line_runs_as_in_a_shell(job: Job, tmp_path: Path) -> None:
    job.hostfile.write_text("")
    script = tmp_path / "script"
    script.write_text("echo ran with $1\n")
    script.chmod(0o755)
    launch = job.launch(script, "it")
    assert launch.ends() == 0
    assert launch.stdout == "ran with it\n"


def test_a_script_whose_interpreter_is_missing_is_named(job: Job, tmp_path: Path) -> None:
    job.hostfile.write_text("")
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    launch = job.launch(script)
    assert launch.ends() == 127
    assert "interpreter" in launch.stderr


ANNOUNCE = (
    "import signal, sys\n"
    "def caught(number, frame):\n"
    "    print('caught', signal.Signals(number).name, flush=True)\n"
    "    if number == signal.SIGTERM: sys.exit(0)\n"
    "for n in (1, 2, 10, 12, 15, 28): signal.signal(n, caught)\n"
    "print('here', flush=True)\n"
    "while True: signal.pause()\n"
)
# A file for each rank, because an mpirun that is ending forwards no more output. Each rank stays until all have
# theirs: Open MPI 5 sends SIGKILL to the ranks of a host as soon as one of them has ended.
SAVE = (
    "import os, pathlib, signal, sys, time\n"
    "folder, ranks = pathlib.Path(sys.argv[1]), int(sys.argv[2])\n"
    "def caught(number, frame):\n"
    "    (folder / f'saved.{os.getpid()}').touch()\n"
    "    while len(list(folder.glob('saved.*'))) < ranks: time.sleep(0.05)\n"
    "    sys.exit(0)\n"
    "signal.signal(signal.SIGTERM, caught)\n"
    "print('here', flush=True)\n"
    "while True: signal.pause()\n"
)


def test_every_signal_reaches_the_command(job: Job) -> None:
    job.hostfile.write_text("")
    launch = job.launch(sys.executable, "-c", ANNOUNCE)
    launch.says("here")
    for name in ("SIGHUP", "SIGINT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGTERM"):
        launch.kill(signal.Signals[name])
        launch.says(f"caught {name}")
    assert launch.ends() == 0


def test_sigterm_reaches_every_rank(openmpi: Job, tmp_path: Path) -> None:
    launch = openmpi.launch("mpirun", "-n", 4, sys.executable, "-c", SAVE, tmp_path, 4)
    launch.says("here", times=4)
    launch.kill()
    assert launch.ends() != 0
    assert len(list(tmp_path.glob("saved.*"))) == 4


def test_sigterm_reaches_the_ranks_of_a_scripts_mpirun(openmpi: Job, tmp_path: Path) -> None:
    script = 'mpirun -n 2 "$@"; echo not reached'
    launch = openmpi.launch("sh", "-c", script, "sh", sys.executable, "-c", SAVE, tmp_path, 2)
    launch.says("here", times=2)
    launch.kill()
    assert launch.ends() == 143
    assert len(list(tmp_path.glob("saved.*"))) == 2
    assert "not reached" not in launch.stdout


def test_a_signal_that_ends_the_command_is_its_exit_code(job: Job) -> None:
    job.hostfile.write_text("")
    launch = job.launch("sleep", "infinity")
    eventually_started(launch.popen.pid)
    launch.kill()
    assert launch.ends() == 143
    assert "sleep ended by SIGTERM (exit 143)" in launch.stderr


def test_orphans_of_the_command_end_with_it(job: Job, tmp_path: Path) -> None:
    job.hostfile.write_text("")
    pid_file = tmp_path / "pid"
    stubborn = f"trap : TERM; echo $$ > {pid_file}; while :; do sleep 0.1; done"
    script = f"setsid sh -c '{stubborn}' & while [ ! -s {pid_file} ]; do sleep 0.05; done"
    launch = job.launch("sh", "-c", script)
    assert launch.ends() == 0
    assert not Path(f"/proc/{pid_file.read_text().strip()}").exists()


def test_orphans_of_a_command_that_ends_at_once_end_with_it(job: Job, tmp_path: Path) -> None:
    job.hostfile.write_text("")
    pid_file = tmp_path / "pid"
    assert job.launch("sh", "-c", f"setsid sleep 600 & echo $! > {pid_file}").ends() == 0
    assert not Path(f"/proc/{pid_file.read_text().strip()}").exists()


def test_what_a_killed_mpirun_left_on_the_workers_is_ended(openmpi: Job, tmp_path: Path) -> None:
    rank = f"trap : TERM HUP; echo $$ > {tmp_path}/pid.$PMIX_RANK; echo here; while :; do sleep 0.1; done"
    launch = openmpi.launch("mpirun", "-n", 2, "setsid", "sh", "-c", rank)
    launch.says("here", times=2)
    [mpirun] = reaper.children(launch.popen.pid)
    os.kill(mpirun, signal.SIGKILL)
    assert launch.ends() == 137
    pids = [(tmp_path / f"pid.{n}").read_text().strip() for n in (0, 1)]
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []


def test_another_launch_on_the_same_workers_is_left_alone(openmpi: Job, tmp_path: Path) -> None:
    rank = f"echo $$ > {tmp_path}/pid.$PMIX_RANK; echo here; exec sleep 600"
    bystander = openmpi.launch("mpirun", "-n", 2, "sh", "-c", rank)
    bystander.says("here", times=2)
    assert openmpi.launch("mpirun", "-n", 2, "false").ends() == 1
    assert bystander.popen.poll() is None
    pids = [(tmp_path / f"pid.{n}").read_text().strip() for n in (0, 1)]
    assert [pid for pid in pids if not Path(f"/proc/{pid}").exists()] == []


def test_the_environment_asked_for_reaches_the_ranks_and_no_secret_does(openmpi: Job) -> None:
    env = {"NCCL_DEBUG": "INFO", "NCCL_ODD": "two words; 'q'", "OTHER": "1", "NOT_ASKED": "1"}
    env["MPIBOOT_TOKEN"] = "s3cret"
    launch = openmpi.launch("mpirun", "-n", 1, "env", options=("--forward-env", "NCCL_*, OTHER"), env=env)
    assert launch.ends() == 0, launch.stderr
    told = dict(line.partition("=")[::2] for line in launch.stdout.splitlines())
    assert (told["NCCL_DEBUG"], told["NCCL_ODD"], told["OTHER"]) == ("INFO", "two words; 'q'", "1")
    assert "NOT_ASKED" not in told
    assert "s3cret" not in launch.stdout


def test_an_ssh_option_of_the_users_own_does_not_switch_off_ours(openmpi: Job) -> None:
    own = {"PRTE_MCA_plm_ssh_args": "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"}
    launch = openmpi.launch("mpirun", "-n", 4, "sh", "-c", WHERE, env=own)
    assert launch.ends() == 0, launch.stderr
    assert placed(launch.stdout) == {openmpi.addresses[0]: 2, openmpi.addresses[1]: 2}


def test_a_worker_that_vanishes_between_probe_and_launch_is_named(openmpi: Job, tmp_path: Path) -> None:
    script = f"touch {tmp_path}/started; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; exec mpirun -n 4 true"
    launch = openmpi.launch("sh", "-c", script)
    launch.says("2 of 2 workers ready")
    openmpi.stop(1)
    (tmp_path / "go").touch()
    assert launch.ends() != 0
    assert f"{openmpi.name(1)} at {openmpi.addresses[1]}  connection refused" in launch.stderr
    assert f"{openmpi.name(0)} at" not in launch.stderr.partition("no login")[2]


def test_a_worker_with_another_host_key_is_refused_and_named(openmpi: Job, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = write_keys(tmp_path / "other")
    (other.worker / "authorized_keys").write_text((openmpi.keys.worker / "authorized_keys").read_text())
    openmpi.stop(1)
    openmpi.keys, right = other, openmpi.keys
    openmpi.start(1)
    openmpi.keys = right
    launch = openmpi.launch("mpirun", "-n", 4, "sh", "-c", WHERE)
    assert launch.ends() != 0
    assert f"{openmpi.name(1)} at {openmpi.addresses[1]}  host key: shows ssh-ed25519" in launch.stderr
    assert placed(launch.stdout).total() == 0


def test_host_checks_can_be_switched_off(openmpi: Job) -> None:
    (openmpi.directory / "l").mkdir()
    (openmpi.directory / "l" / "id_rsa").write_text((openmpi.keys.launcher / "id_rsa").read_text())
    files = ("--ssh-dir", openmpi.directory / "l", "--hostfile", openmpi.hostfile, "--addresses", openmpi.address_file)
    refused = openmpi.run("launch", *files, "--", "true", env=openmpi.env)
    assert refused.ends() == 2
    assert "known_hosts is missing" in refused.stderr
    words = ("mpirun", "-n", 4, "sh", "-c", WHERE)
    launch = openmpi.run("launch", *files, "--host-keys", "off", "--", *words, env=openmpi.env)
    assert launch.ends() == 0, launch.stderr
    assert placed(launch.stdout) == {openmpi.addresses[0]: 2, openmpi.addresses[1]: 2}


def test_a_users_single_key_pair_is_client_key_and_host_key(openmpi: Job) -> None:
    single = openmpi.directory / "single"
    single.mkdir()
    for name in ("id_rsa", "id_rsa.pub"):
        (single / name).write_text((openmpi.keys.launcher / name).read_text())
    (single / "authorized_keys").write_text((single / "id_rsa.pub").read_text())
    openmpi.stop(0)
    openmpi.stop(1)
    openmpi.keys = type(openmpi.keys)(single, single)
    openmpi.start(0, 1)
    launch = openmpi.launch("mpirun", "-n", 4, "sh", "-c", WHERE)
    assert launch.ends() == 0, launch.stderr
    assert placed(launch.stdout) == {openmpi.addresses[0]: 2, openmpi.addresses[1]: 2}


def test_keys_that_are_missing_are_named(job: Job) -> None:
    (job.directory / "empty").mkdir()
    launch = job.run("launch", "--ssh-dir", job.directory / "empty", "--hostfile", job.hostfile, "--", "true")
    assert launch.ends() == 2
    assert f"{job.directory}/empty/id_rsa is missing" in launch.stderr


def test_nothing_is_left_on_disk(openmpi: Job) -> None:
    assert openmpi.launch("mpirun", "-n", 2, "true").ends() == 0
    assert list(openmpi.directory.glob("mpiboot-launch-*")) == []


def test_events_are_marked_where_asked_for(openmpi: Job, tmp_path: Path) -> None:
    import json

    launch = openmpi.launch("mpirun", "-n", 1, "true", env={"MPIBOOT_EVENTS": str(tmp_path / "events")})
    assert launch.ends() == 0
    marks = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    assert [mark["event"] for mark in marks] == ["addresses", "ready", "exec", "exit"]
    assert [mark["t"] for mark in marks] == sorted(mark["t"] for mark in marks)
    assert {mark["who"] for mark in marks} == {"launcher"}


def eventually_started(launcher: int) -> None:
    eventually(lambda: any(_runs_sleep(pid) for pid in reaper.children(launcher)))


def _runs_sleep(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\x00infinity\x00"
    except OSError:
        return False
