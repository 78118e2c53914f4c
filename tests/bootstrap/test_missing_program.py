"""The messages after a command failed: which program is missing where, and which workers were not reached."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mpiboot.bootstrap.hosts import Endpoint, Entry
from mpiboot.bootstrap.process import reaper
from mpiboot.bootstrap.process.signals import Signals
from mpiboot.bootstrap.run import cleanup, diagnosis, mpirun
from mpiboot.bootstrap.run.access import Ports
from mpiboot.bootstrap.run.mpirun import Program
from mpiboot.bootstrap.run.rundir import RunDir
from mpiboot.bootstrap.wait.worker_table import Worker
from mpiboot.ssh.client import Client
from tests.bootstrap.processes import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bootstrap.conftest import Job


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("mpirun ./a.out", ["./a.out"]),
        ("/opt/bin/mpirun -n 4 --hostfile f ./a.out -n 9", ["./a.out"]),
        ("mpirun -mca btl ^openib --map-by=node -x PATH --bind-to none -np 2 python train.py", ["python"]),
        ("mpiexec -genv A 1 -genvall -n 2 ./a : -n 3 -env B 2 ./b x", ["./a", "./b"]),
        ("mpirun -n 1 ./a : -n 1 ./a", ["./a"]),
        ("mpirun --some-option 4 ./a.out", []),  # 4 may be the program
        ("mpirun -n", []),
        ("mpirun -n 4", []),
        ("mpirun", []),
        ("mpirun --version", []),
    ],
)
def test_the_programs_of_a_command_line_are_found_where_it_is_clear(line: str, names: list[str]) -> None:
    assert [program.name for program in mpirun.programs_of(line.split(), "/work")] == names


def test_a_program_runs_in_the_directory_that_an_option_names() -> None:
    words = ["mpirun", "-wdir", "/data", "./a", ":", "-wdir", "sub", "./b", ":", "./c"]
    assert [program.directory for program in mpirun.programs_of(words, "/work")] == ["/data", "/work/sub", "/work"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("./good", None), ("good", None), ("sh", None), ("{}/good", None), ("./it's odd", None),
        ("-n", "does not exist"),
        ("./missing", "does not exist"), ("missing", "does not exist"), ("{}/missing", "does not exist"),
        ("./folder", "is a directory"), ("./text", "is not executable"), ("./broken", "does not exist"),
        ("text", None),  # an mpirun may take a bare name from its directory, so nothing is claimed
    ],
)  # fmt: skip
def test_a_host_is_asked_whether_it_can_run_a_program(tmp_path: Path, name: str, kind: str | None) -> None:
    for file in ("good", "it's odd"):
        (tmp_path / file).write_text("")
        (tmp_path / file).chmod(0o755)
    (tmp_path / "text").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "broken").symlink_to("nowhere")
    asked = [Program("sh", str(tmp_path)), Program(name.format(tmp_path), str(tmp_path))]
    code = subprocess.run(["sh", "-c", mpirun.check_script(asked, "/nowhere")], check=False).returncode
    found = mpirun.failed_check(asked, code)
    assert found == (None if kind is None else (asked[1], kind))


def test_a_relative_program_in_a_directory_that_a_host_lacks_is_not_judged() -> None:
    asked = [Program("./a.out", "/no/such/directory")]
    assert subprocess.run(["sh", "-c", mpirun.check_script(asked, "")], check=False).returncode == 0


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("no-such-program", "the program no-such-program does not exist on {0} and 1 more (looked for in PATH)"),
        ("/data/a.out", "the program /data/a.out does not exist on {0} and 1 more; copy it into the image"),
        ("/tmp", "/tmp is a directory on {0} and 1 more; name a program in this directory"),
        ("/etc/passwd", "the program /etc/passwd is not executable on {0} and 1 more; run chmod +x on it"),
    ],
)
def test_a_program_that_the_workers_cannot_run_is_named_with_the_cause(openmpi: Job, wanted: str, message: str) -> None:
    launch = openmpi.launch("mpirun", "-n", 4, wanted)
    assert launch.ends() > 2
    assert f"mpiboot: {message.format(openmpi.name(0))}" in launch.stderr


def test_a_program_that_no_worker_has_is_named_with_the_cause(any_mpi: Job) -> None:
    launch = any_mpi.launch("mpirun", "-n", 4, "./a.out")
    assert launch.ends() > 2
    where = f"{any_mpi.name(0)} and 1 more (looked for in {Path.cwd()})"
    assert f"mpiboot: the program ./a.out does not exist on {where}; copy it into the image" in launch.stderr
    assert "Traceback" not in launch.stderr


def test_a_program_that_this_host_cannot_run_is_named_where_it_has_all_the_ranks(openmpi: Job) -> None:
    openmpi.hostfile.write_text("localhost slots=2\n")
    launch = openmpi.launch("mpirun", "-n", 2, "./a.out")
    assert launch.ends() > 2
    assert "mpiboot: the program ./a.out does not exist on the launcher" in launch.stderr


def test_a_program_that_fails_by_itself_is_not_reported_missing(openmpi: Job) -> None:
    launch = openmpi.launch("mpirun", "-n", 2, "false")
    assert launch.ends() == 1
    assert launch.stderr.rstrip().endswith("mpiboot: mpirun exited with code 1")


@pytest.fixture
def signals() -> Iterator[Signals]:
    caught = Signals()
    yield caught
    caught.close()


SSH = """#!/bin/sh
for word; do case $word in w[0-9]*) echo "$word" >> "$CONTACTED" ;; esac; done
case "$*" in *" w7 "*) exit 255 ;; *" w9 "*) exit 0 ;; esac
exec sleep 600
"""


def test_every_worker_is_contacted_and_each_that_was_not_reached_is_named(
    tmp_path: Path, signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred workers that do not answer must not keep the others from being cleaned up."""
    monkeypatch.setattr(cleanup, "_MAY_TAKE", 1.0)
    (tmp_path / "ssh").write_text(SSH)
    (tmp_path / "ssh").chmod(0o755)
    contacted = tmp_path / "contacted"
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin", "CONTACTED": str(contacted)}
    names = [f"w{number}" for number in range(100)]
    codes = cleanup.end_on(names, cleanup.Launched("/config", "x"), "", environ, signals)
    assert sorted(contacted.read_text().split()) == sorted(names)
    assert codes.pop("w7") == 255
    assert codes.pop("w9") == 0
    assert set(codes.values()) == {None}
    eventually(lambda: not [pid for pid in reaper.children(os.getpid()) if sleeps(pid)], "an ssh is left")


def sleeps(pid: int) -> bool:
    try:
        return "sleep" in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False


def test_the_workers_that_were_not_reached_are_all_in_the_message() -> None:
    hosts = [Worker(Entry(f"w{number}", 1), 0.0, 0.0) for number in range(100)]
    for host in hosts:
        host.by_file = Endpoint("127.0.0.1", 1)
    client = Client(identity="", known_hosts="", verify=False, user="", launch="", includes=())
    ports = Ports(RunDir("/nowhere", temporary=True), client, {})
    message = diagnosis.not_ended(hosts, client, ports, 120)
    assert message.startswith("no login to 100 of 120 workers, so processes of the job may still run there:")
    assert {host.name for host in hosts} <= set(message.replace(",", "").split())


def test_a_login_after_the_end_needs_no_file_of_the_run(tmp_path: Path) -> None:
    known_hosts = tmp_path / "known_hosts"
    known_hosts.write_text("w0 ssh-ed25519 AAAA\n")
    client = Client("/nowhere/id", str(known_hosts), verify=True, user="", launch="", includes=())
    login = diagnosis.login_with(client, Ports(RunDir("/nowhere", temporary=True), client, {}), 1.0)
    known_hosts.unlink()  # the launcher ends while a thread logs in
    failure = login("w0", Endpoint("127.0.0.1", 1))
    assert failure
    assert failure.kind.value == "connection refused"
