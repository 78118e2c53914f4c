"""Input that cannot be right ends as one line: what, where and why. The exit code is 2, and nothing is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mpiboot.bootstrap import files
from mpiboot.bootstrap.elastic import discovery
from mpiboot.bootstrap.hosts import Endpoint, Entry, is_name, is_user
from mpiboot.bootstrap.process import events, spawn
from mpiboot.bootstrap.process.signals import Signals
from mpiboot.bootstrap.run import hostfile, placement
from mpiboot.bootstrap.wait import addresses
from mpiboot.bootstrap.wait.loop import Loop
from mpiboot.bootstrap.wait.worker_table import Policy, WorkerTable
from mpiboot.job.errors import UserError
from tests.bootstrap.conftest import PORT
from tests.bootstrap.processes import PATIENCE, eventually, state
from tests.conftest import missing

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from tests.bootstrap.conftest import Job, Server
    from tests.bootstrap.processes import Process

NINES = "9" * 4301  # `int` refuses more than 4,300 digits
LONG = "a" * 300


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[-oProxyCommand=touch]", "f:1: '-oProxyCommand=touch' is not a host name"),
        ("[../../../x]:2", "f:1: '../../../x' is not a host name"),
        ("[]", "f:1: '' is not a host name"),
        ("[::1", "f:1: '[::1' is not a host name"),
        ("[::1]x", "f:1: '[::1]x' is not a host name"),
        ("..", "f:1: '..' is not a host name"),
        (".:2", "f:1: '.' is not a host name"),
        ("a:b:c", "f:1: 'a:b:c' is not a host name"),
        (LONG, f"f:1: '{'a' * 60}'... is not a host name"),
        ("a slots=\u00b2", "f:1: slots must be a whole number, is '\u00b2'"),
        ("a:\u0663", "f:1: slots must be a whole number, is '\u0663'"),
        (f"a slots={NINES}", f"f:1: slots must be a whole number, is '{'9' * 60}'..."),
    ],
)
def test_a_hostfile_with_such_a_line_is_refused(line: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        hostfile.parse(f"{line}\n", "f")
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("../x 10.0.0.1", "1: '../x' is not a host name"),
        ("-oProxyCommand=x 10.0.0.1", "1: '-oProxyCommand=x' is not a host name"),
        ("a 10.0.0.1 \u0662\u0662", "1: '\u0662\u0662' is not a port"),
        (f"a 10.0.0.1 {NINES}", f"1: '{'9' * 60}' is not a port"),
        ("a 10.0.0.1 22 -x", "1: '-x' is not a user's name"),
        ('a 10.0.0.1 22 "x', "1: '\"x' is not a user's name"),
    ],
)
def test_a_line_of_addresses_that_could_end_up_elsewhere_is_left_out(line: str, message: str) -> None:
    assert addresses.parse(f"{line}\n") == ({}, [message])


def test_names_and_users_that_exist_are_taken() -> None:
    for name in ("pi-worker-0.pi.default.svc", "node_1", "10.0.0.1", "fe80::1", "a" * 253):
        assert is_name(name)
    for user in ("mpiuser", "first.last", "a_b-c", "svc$", "user@example.org"):
        assert is_user(user)


@pytest.mark.parametrize("number", [NINES, "\u0662", "\u00b2"])
def test_odd_numbers_in_commands_and_answers_are_no_numbers(number: str) -> None:
    assert placement.ranks_asked_for(["mpirun", "-n", number, "p"]) is None
    assert "slots must be a number" in discovery.fault(f"a:{number}\n", 0)


ENDLESS = "/dev/zero"
CHECKIN_IS_WRONG = "MPIBOOT_CHECKIN, MPIBOOT_JOB or MPIBOOT_TOKEN is wrong: "


@pytest.mark.parametrize(
    ("command", "options", "env", "message"),
    [
        ("worker", ("--listen", "localhost"), {}, "--listen must be an IP address of this host, is 'localhost'"),
        ("worker", ("--listen", "300.1.1.1"), {}, "--listen must be an IP address of this host, is '300.1.1.1'"),
        ("worker", ("--listen", f"{NINES}.1.1.1"), {}, "--listen must be an IP address of this host, is '999"),
        ("worker", ("--port", "\u0662"), {}, "--port must be a whole number (a port number), is '\u0662'"),
        ("worker", ("--port", NINES), {}, "--port must be a whole number (a port number), is '999"),
        ("worker", (), {"MPIBOOT_INDEX": "\u00b2"}, "MPIBOOT_INDEX must be a whole number (this worker's number)"),
        ("worker", (), {"MPIBOOT_INDEX": "9" * 400}, "MPIBOOT_INDEX must be a whole number (this worker's number)"),
        ("wait", ("--min-workers", "9" * 400), {}, "--min-workers must be a whole number (workers), is '999"),
        ("wait", ("--min-workers", NINES), {}, "--min-workers must be a whole number (workers), is '999"),
        ("wait", ("--init-timeout", "\u0663"), {}, "--init-timeout must be"),
        ("wait", ("--user", "a b"), {}, "--user must be a user's name, is 'a b'"),
        ("wait", ("--user", "a\nProxyCommand x"), {}, "--user must be a user's name"),
        ("wait", ("--hostfile", "/tmp"), {}, "cannot read the hostfile /tmp: Is a directory"),
        ("wait", ("--hostfile", ENDLESS), {}, f"cannot read the hostfile {ENDLESS}: it is larger than 16 MiB"),
        ("wait", (), {"MPIBOOT_CHECKIN": "nowhere", "MPIBOOT_JOB": "n/j", "MPIBOOT_TOKEN": "t"}, CHECKIN_IS_WRONG),
        ("wait", (), {"MPIBOOT_CHECKIN": "http://x", "MPIBOOT_JOB": "A B", "MPIBOOT_TOKEN": "t"}, CHECKIN_IS_WRONG),
        ("wait", (), {"MPIBOOT_CHECKIN": "http://x", "MPIBOOT_JOB": "n/j", "MPIBOOT_TOKEN": "\t"}, CHECKIN_IS_WRONG),
        ("launch", ("true",), {"MPIBOOT_RUN_DIR": "/tmp/a b"}, "MPIBOOT_RUN_DIR=/tmp/a b must be an absolute path"),
        ("launch", ("true",), {"MPIBOOT_RUN_DIR": "/no/such"}, "launch: No such file or directory: /no/such"),
        ("launch", ("true",), {"MPIBOOT_RUN_DIR": "/etc/passwd"}, "MPIBOOT_RUN_DIR=/etc/passwd is in use"),
        ("launch", ("--ssh-dir", "/etc/passwd", "true"), {}, "cannot read /etc/passwd/id_rsa: Not a directory"),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be_right_is_one_line(
    job: Job, command: str, options: tuple[str, ...], env: dict[str, str], message: str
) -> None:
    process = job.run(command, *options, env=env)
    assert process.ends() == 2, process.stderr
    assert process.stderr.startswith(f"mpiboot: {message}"), process.stderr
    assert len(process.stderr.splitlines()) == 1
    assert list(job.directory.glob("mpiboot-*")) == []


@pytest.mark.parametrize("command", ["launch", "hosts"])
def test_keys_of_any_content_are_one_line_or_no_matter(job: Job, tmp_path: Path, command: str) -> None:
    keys = tmp_path / "keys"
    keys.mkdir()
    for name in ("id_rsa", "known_hosts"):
        (keys / name).write_bytes(b"\xff\xfe\x00")
    process = job.run(command, "--ssh-dir", keys, *(("true",) if command == "launch" else ()))
    assert process.ends() == (2 if command == "launch" else 0)
    expected = f"mpiboot: cannot read {keys}/id_rsa: it is not text\n" if command == "launch" else ""
    assert process.stderr == expected


def test_a_live_list_of_any_content_is_printed(job: Job, tmp_path: Path) -> None:
    (tmp_path / "live").write_bytes(b"w0:1\n\xff\n")
    process = job.run("hosts", env={"MPIBOOT_LIVE_HOSTS": str(tmp_path / "live")})
    assert process.ends() == 0
    assert process.stdout == "w0:1\n\N{REPLACEMENT CHARACTER}\n"


@pytest.mark.parametrize("words", [("hosts",), ("launch", "--help")])
def test_an_output_that_is_closed_or_full_is_no_trace(job: Job, words: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "mpiboot", *words]
    env = {**os.environ, "MPIBOOT_LIVE_HOSTS": str(job.hostfile)}
    readable, writable = os.pipe()
    os.close(readable)
    unread = subprocess.run(command, env=env, stdout=writable, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    os.close(writable)
    assert (unread.returncode, unread.stderr) == (0, "")
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(command, env=env, stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (2, f"mpiboot: {words[0]}: No space left on device: stdout\n")
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *command], env=env, stderr=subprocess.PIPE, text=True, timeout=PATIENCE
    )
    assert (closed.returncode, closed.stderr) == (0, "")


def test_addresses_that_cannot_be_read_are_reported_once(job: Job, tmp_path: Path) -> None:
    launch = job.run("wait", "--hostfile", job.hostfile, "--addresses", tmp_path, "--init-timeout", 1)
    assert launch.ends() == 124
    assert launch.stderr.count(f"mpiboot: cannot read the addresses: {tmp_path}: Is a directory\n") == 1


def test_a_file_that_has_no_end_is_not_read_to_its_end() -> None:
    file = addresses.AddressFile(ENDLESS)
    assert file.changed() is None
    assert file.problems == (f"cannot read the addresses: {ENDLESS}: it is larger than 16 MiB",)


def test_a_named_pipe_in_a_command_does_not_stop_the_launcher(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="regular"):
        files.read_regular(str(tmp_path / "pipe"))
    assert placement.on_purpose(["mpirun", "--hostfile", str(tmp_path / "pipe"), "p"], ["w0"]) is False


def test_events_that_have_no_place_are_not_marked() -> None:
    for target in ("fd:99999999999999999999", "fd:x", "fd:-7", "/no/such/directory/events"):
        events.Events(target, "launcher").mark("ready")


def test_a_launch_whose_temporary_directory_has_an_odd_name_works_elsewhere(openmpi: Job) -> None:
    odd = openmpi.directory / "a \"b\" 100% 'c'"
    odd.mkdir()
    launch = openmpi.launch("mpirun", "-n", 4, "echo", "a rank", env={"TMPDIR": str(odd)})
    assert launch.ends() == 0, launch.stderr
    assert launch.stdout.count("a rank") == 4
    assert list(odd.iterdir()) == []


def small_disk(job: Job, program: Callable[[str], str], then: str = "") -> tuple[tuple[str, ...], Path]:
    """The prefix that starts a process with a small disk of its own, and the path of the disk."""
    if os.geteuid() != 0:
        missing("root, for a file system of its own", "sudo make test")
    program("unshare")
    disk = job.directory / "disk"
    disk.mkdir()
    script = f'mount -t tmpfs -o size=64k none {disk} && {then or "true"} && exec "$@"'
    return ("unshare", "-m", "sh", "-c", script, "sh"), disk


@pytest.mark.parametrize("command", ["launch", "worker"])
def test_a_full_disk_is_one_line(job: Job, program: Callable[[str], str], command: str) -> None:
    prefix, disk = small_disk(job, program, f"head -c 65536 /dev/zero > {job.directory}/disk/full")
    keys = job.keys.launcher if command == "launch" else job.keys.worker
    more = ("true",) if command == "launch" else ("--listen", job.addresses[0])
    process = job.run(command, "--ssh-dir", keys, *more, env={"TMPDIR": str(disk)}, prefix=prefix)
    assert process.ends() == 2, process.stderr
    assert process.stderr.startswith(f"mpiboot: {command}: No space left on device: {disk}/mpiboot-{command}-")
    assert len(process.stderr.splitlines()) == 1


POLL = 'while [ ! -e "$0" ]; do sleep 0.1; done'


def test_a_disk_that_fills_while_an_elastic_job_runs_does_not_end_the_job(
    job: Job, program: Callable[[str], str]
) -> None:
    prefix, disk = small_disk(job, program)
    job.start(0)
    job.tell(0)
    fill, free = f"head -c 65536 /dev/zero > {disk}/full 2>&1", f"rm -f {disk}/full"
    end, go = job.directory / "end", job.directory / "go"
    script = f"{fill}; echo filled; while [ ! -e {go} ]; do sleep 0.1; done; {free}; {POLL}"
    files = ("--ssh-dir", job.keys.launcher, "--hostfile", job.hostfile, "--addresses", job.address_file)
    words = (*files, "--min-workers", 1, "--", "sh", "-c", script, end)
    launch = job.run("launch", *words, env={"TMPDIR": str(disk)}, prefix=prefix)
    launch.says("filled")
    job.start(1)
    job.tell(0, 1)
    launch.says("mpiboot: cannot update the list of workers: ")
    go.touch()
    launch.says("mpiboot: 1 -> 2 workers: + worker-1\n")
    end.touch()
    assert launch.ends() == 0, launch.stderr
    assert launch.stderr.count("cannot update the list of workers") == 1


class SlowPorts:
    """Ports of an `ssh -G` that is slow."""

    def __init__(self) -> None:
        self.answer, self.asked = threading.Event(), 0
        self.port: int | None = None

    def known(self, name: str) -> int | None:  # noqa: ARG002
        return self.port

    def group(self, name: str) -> str:  # noqa: ARG002
        return ""

    def effective(self, name: str) -> object:  # noqa: ARG002
        self.asked += 1
        self.answer.wait(PATIENCE)
        self.port = PORT
        return None


def greet(connection: socket.socket) -> None:
    connection.sendall(b"SSH-2.0-test\r\n")
    connection.recv(100)


def test_an_ssh_that_is_slow_to_name_its_port_keeps_no_other_worker_waiting(misbehaving: Callable[..., Server]) -> None:
    endpoints = {f"w{index}": Endpoint(misbehaving(greet).address, PORT if index == 0 else None) for index in range(3)}
    table = WorkerTable([Entry(name, 1) for name in endpoints], Policy(300.0), time.monotonic())
    table.update_from_file(endpoints, time.monotonic())
    ports = SlowPorts()
    watch = Loop(table, None, None, ports, None, print)

    def ready() -> int:
        watch.step(time.monotonic() + 0.05)
        return table.ready_count

    eventually(lambda: ready() == 1)
    ports.answer.set()
    eventually(lambda: ready() == 3)
    assert ports.asked == 1  # one answer holds for all
    watch.close()


def test_a_time_out_of_many_years_is_waited_for() -> None:
    watch = Loop(WorkerTable([], Policy(1e300), time.monotonic()), None, None, SlowPorts(), None, print)
    readable, writable = os.pipe()
    heard = list[bytes]()
    watch.add(readable, lambda _: heard.append(os.read(readable, 1)))
    os.write(writable, b"x")
    watch.step(time.monotonic() + 1e300)
    assert heard == [b"x"]
    watch.close()


def discovering(job: Job, script: str) -> Process:
    job.start(0, 1)
    path = job.directory / "discover.sh"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return job.launch("sh", "-c", "echo started", "--host-discovery-script", path)


def test_sigterm_ends_the_launcher_while_the_discovery_script_runs(job: Job) -> None:
    launch = discovering(job, f"echo $$ > {job.directory}/pid; sleep 600")
    eventually(lambda: (job.directory / "pid").exists() and (job.directory / "pid").read_text().strip())
    launch.kill()
    assert launch.ends() == 143
    assert launch.stderr.endswith("mpiboot: ended by SIGTERM while the discovery script ran (exit 143)\n")
    pid = int((job.directory / "pid").read_text())
    eventually(lambda: state(pid) in ("", "Z"), "the script still runs")


def test_a_discovery_script_that_prints_for_ever_is_refused(job: Job) -> None:
    launch = discovering(job, "exec yes pi-worker-0:1")
    assert launch.ends() == 2
    assert "printed more than 1 MiB" in launch.stderr


@pytest.mark.parametrize("script", ["exec sleep 600", "echo a; exec sleep 600 >&-", "sleep 600 & echo a"])
def test_a_script_that_does_not_end_is_ended(script: str) -> None:
    caught = Signals()
    mark = f"MPIBOOT_TEST_MARK={uuid.uuid4()}"
    name, value = mark.split("=")
    try:
        done = spawn.finished(["sh", "-c", script], {"PATH": "/usr/bin:/bin", name: value}, caught, 0.5, "testing")
    finally:
        caught.close()
    assert (done.code, done.why) == (None, "did not end within 0.5 s")
    eventually(lambda: not with_variable(mark), "a process of the script lives on")


def with_variable(variable: str) -> list[int]:
    """The living processes that have this variable. Other tests' processes may be children of this one, too."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # The process has ended.
            if variable.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


def moving(directory: Path, keys: dict[str, bytes], uri: str = "s3://bucket/x") -> subprocess.CompletedProcess[str]:
    for name, value in keys.items():
        (directory / name).write_bytes(value)
    words = [sys.executable, "-m", "mpiboot.bootstrap.data.s3", "fetch", uri, str(directory / "to"), str(directory)]
    return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)


GOOD = {"AWS_ACCESS_KEY_ID": b"id", "AWS_SECRET_ACCESS_KEY": b"secret", "AWS_DEFAULT_REGION": b"x"}


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        (
            "AWS_ACCESS_KEY_ID",
            b"\xff\xfe",
            "cannot use the key AWS_ACCESS_KEY_ID of the S3 Secret (mounted at {}): it is not text",
        ),
        (
            "AWS_SECRET_ACCESS_KEY",
            b"a\0b",
            "cannot use the key AWS_SECRET_ACCESS_KEY of the S3 Secret (mounted at {}): it holds",
        ),
        ("AWS_ENDPOINT_URL", b"somewhere", "cannot fetch s3://bucket/x"),
        ("AWS_ENDPOINT_URL", b"http://", "cannot fetch s3://bucket/x"),
        ("AWS_CA_BUNDLE", b"/no/such/file", "cannot fetch s3://bucket/x"),
        ("AWS_DEFAULT_REGION", b"not a region", "cannot connect to S3: Provided region_name"),
    ],
)
def test_s3_settings_of_any_content_are_one_line(tmp_path: Path, name: str, value: bytes, reason: str) -> None:
    pytest.importorskip("boto3")
    endpoint = {"AWS_ENDPOINT_URL": b"https://127.0.0.1:9"}
    done = moving(tmp_path, {**GOOD, **endpoint, name: value})
    assert done.returncode == 74, done.stderr
    assert done.stderr == ""
    assert done.stdout.startswith(reason.format(tmp_path))
    assert len(done.stdout.splitlines()) == 1
