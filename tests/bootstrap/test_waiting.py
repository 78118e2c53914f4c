"""The wait, against hosts that refuse, hang, speak no SSH, come late, move, restart, or are impostors."""

from __future__ import annotations

import os
import pty
import re
import select
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.bootstrap.conftest import PORT, fresh_address, write_keys
from tests.bootstrap.processes import PATIENCE, eventually
from tests.conftest import missing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.bootstrap.conftest import Job, Server

    Misbehaving = Callable[..., Server]

BANNER = b"SSH-2.0-OpenSSH_9.2p1 test\r\n"


def test_workers_that_listen_are_ready_at_once(job: Job) -> None:
    job.start(0, 1)
    wait = job.command("wait")
    assert wait.ends() == 0, wait.stderr
    assert re.search(r"2 of 2 workers ready after \d+\.\d s", wait.stderr)
    assert "waiting for" not in wait.stderr  # it never logged that it waits: they were ready at the first look


def test_a_late_worker_is_waited_for_and_named(job: Job) -> None:
    job.start(0)
    wait = job.command("wait")
    wait.says("1/2 workers ready")
    wait.says("waiting for pi-worker-1 (connection refused)")
    job.start(1)
    assert wait.ends() == 0, wait.stderr


def test_an_address_that_comes_late_is_taken(job: Job) -> None:
    job.start(0, 1)
    job.tell(0)
    wait = job.command("wait")
    wait.says("waiting for pi-worker-1 (")
    job.tell(0, 1)
    assert wait.ends() == 0, wait.stderr


def test_a_file_of_addresses_that_is_made_late_is_read(job: Job) -> None:
    job.start(0, 1)
    job.address_file.unlink()
    wait = job.command("wait")
    wait.says("0/2 workers ready")
    job.tell(0, 1)
    assert wait.ends() == 0, wait.stderr


def test_a_worker_that_moves_while_it_is_awaited_is_followed(job: Job) -> None:
    job.start(0)
    wait = job.command("wait")
    wait.says("pi-worker-1 (connection refused)")
    job.addresses[1] = fresh_address()
    job.start(1)
    job.tell(0, 1)
    assert wait.ends() == 0, wait.stderr


def test_a_worker_that_was_ready_and_moved_is_tried_again(job: Job) -> None:
    job.start(0)
    wait = job.command("wait")
    wait.says("1/2 workers ready")
    job.stop(0)
    job.addresses[0] = fresh_address()
    job.tell(0, 1)
    wait.says("0/2 workers ready")
    job.start(0, 1)
    assert wait.ends() == 0, wait.stderr


def test_a_worker_that_answered_long_ago_is_probed_once_more(job: Job) -> None:
    """It is gone when the last one comes: without a second probe the start would fail."""
    job.start(0)
    wait = job.command("wait")
    wait.says("1/2 workers ready")
    job.stop(0)
    threading.Event().wait(11)  # longer than an answer counts as fresh
    job.start(1)
    wait.says("waiting for pi-worker-0 (connection refused)")
    job.start(0)
    assert wait.ends() == 0, wait.stderr


def closed(connection: socket.socket) -> None:
    """The server closes it."""


def web_server(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def busy_sshd(connection: socket.socket) -> None:
    connection.sendall(b"Exceeded MaxStartups\r\n")


def ssh_one(connection: socket.socket) -> None:
    connection.sendall(b"SSH-1.5-old\r\n")
    connection.recv(64)


def silent(connection: socket.socket) -> None:
    connection.recv(64)


@pytest.mark.parametrize(
    ("handle", "limit", "reason"),
    [
        (closed, 4, "not SSH: closed the connection before its SSH banner"),
        (busy_sshd, 4, "not SSH: said 'Exceeded MaxStartups' and closed"),
        (web_server, 4, "not SSH: said 'HTTP/1.1 400 Bad Request' and closed"),
        (ssh_one, 4, "not SSH: answers with SSH-1.5-old"),
        (silent, 14, "timed out: connected, no SSH banner within 10 s"),
    ],
)
def test_a_host_that_is_no_ssh_server_is_classed(
    job: Job, misbehaving: Misbehaving, handle: Callable[[socket.socket], None], limit: float, reason: str
) -> None:
    job.start(0)
    misbehaving(handle, job.addresses[1])
    wait = job.command("wait", "--init-timeout", limit)
    assert wait.ends() == 124
    assert f"(limit {limit:g} s, --init-timeout); exit 124" in wait.stderr
    assert f"{job.name(1)} at {job.addresses[1]}:{PORT}  {reason}, " in wait.stderr
    assert "the other 1 is ready" in wait.stderr


def test_a_host_that_refuses_and_one_without_an_address_are_classed(job: Job) -> None:
    job.tell(0)
    wait = job.command("wait", "--init-timeout", 1.2)  # DNS would be asked only later
    assert wait.ends() == 124
    assert "2 of 2 workers not ready after " in wait.stderr
    assert " (limit 1.2 s, --init-timeout); exit 124" in wait.stderr
    assert f"{job.name(0)} at {job.addresses[0]}:{PORT}  connection refused, " in wait.stderr
    assert f"{job.name(1)}  no address" in wait.stderr


def test_a_name_that_nothing_resolves_is_classed_as_dns(job: Job) -> None:
    wait = job.run("wait", "--hostfile", job.hostfile, "--init-timeout", 5)
    assert wait.ends() == 124
    assert f"{job.name(0)}  DNS: " in wait.stderr


def test_a_name_that_is_missing_now_and_there_later_is_found(job: Job, tmp_path: Path) -> None:
    """The resolver's file is this process's own, in a mount namespace, so that names can come and change."""
    if os.geteuid() != 0:
        missing("root, for a file of host names of its own", "sudo make test")
    names = tmp_path / "hosts"
    names.write_text("127.0.0.1 localhost\n")
    job.start(0, 1)
    inner = f'mount --bind {names} /etc/hosts && exec "$@"'
    wait = ("wait", "--hostfile", job.hostfile, "--init-timeout", 50)
    process = job.run(*wait, prefix=("unshare", "-m", "sh", "-c", inner, "sh"))
    process.says("0/2 workers ready")
    with names.open("a") as file:  # in place: the mount is of the file, not of its name
        file.write("".join(f"{address} {name}\n" for address, name in zip(job.addresses, job.names, strict=True)))
    assert process.ends() == 0, process.stderr


def test_an_sshd_that_answers_after_a_while_is_waited_for(job: Job, misbehaving: Misbehaving) -> None:
    job.start(0)
    answer = threading.Event()

    def slow(connection: socket.socket) -> None:
        answer.wait(PATIENCE)
        connection.sendall(BANNER)
        connection.recv(64)

    misbehaving(slow, job.addresses[1])
    wait = job.command("wait")
    wait.says("1/2 workers ready")
    answer.set()
    assert wait.ends() == 0, wait.stderr


def test_a_probe_is_gentle(job: Job, misbehaving: Misbehaving) -> None:
    """A connection that reached a server is not repeated within a second, and there is none after the first banner."""
    good = misbehaving(lambda connection: connection.sendall(BANNER) or connection.recv(64), job.addresses[0])
    bad = misbehaving(closed, job.addresses[1])
    wait = job.command("wait")
    began = time.monotonic()
    eventually(lambda: bad.connections >= 3)
    assert time.monotonic() - began > 1.6  # two pauses of a second, each shortened by at most a fifth
    assert good.connections == 1
    wait.kill()
    assert wait.ends() == 143


def test_a_banner_in_pieces_after_other_lines_counts(job: Job, misbehaving: Misbehaving) -> None:
    job.start(0)

    def talkative(connection: socket.socket) -> None:
        for piece in (b"Welcome\r\nto this", b" host\r\nSS", b"H-2.0-x\r\n"):
            connection.sendall(piece)
            select.select([], [], [], 0.05)
        connection.recv(64)

    misbehaving(talkative, job.addresses[1])
    wait = job.command("wait")
    assert wait.ends() == 0, wait.stderr


def test_some_workers_are_enough_for_an_elastic_job(job: Job) -> None:
    job.start(0)
    launch = job.launch("cat", job.directory / "copy", options=("--min-workers", 1))
    launch.ends()
    assert "1 of 2 workers ready" in launch.stderr


def test_only_the_workers_that_are_ready_are_in_the_hostfile(job: Job) -> None:
    job.start(0)
    launch = job.launch("sh", "-c", 'cat "$MPIBOOT_HOSTFILE"', options=("--min-workers", 1))
    assert launch.ends() == 0, launch.stderr
    assert launch.stdout.split()[0].partition(":")[0] == job.name(0)
    assert job.name(1) not in launch.stdout


def test_a_login_finds_what_a_banner_hides(job: Job, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other, right = write_keys(tmp_path / "other"), job.keys
    job.keys = type(right)(right.launcher, other.worker)
    job.start(1)  # another host key, and it lets another client in
    job.keys = right
    job.start(0)
    assert job.command("wait").ends() == 0
    wait = job.command("wait", "--probe", "all")
    wait.says("1/2 workers ready")
    wait.says("waiting for pi-worker-1 (host key: shows ssh-ed25519 SHA256:")
    wait.kill()
    assert wait.ends() == 143


def test_a_worker_that_refuses_logins_is_classed(job: Job, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other, right = write_keys(tmp_path / "other"), job.keys
    (other.worker / "id_rsa").write_text((right.worker / "id_rsa").read_text())
    job.keys = type(right)(right.launcher, other.worker)
    job.start(0, 1)
    wait = job.command("wait", "--probe", "all")
    wait.says("pi-worker-0 (authentication: root cannot log in")
    wait.kill()
    assert wait.ends() == 143


def test_no_probe_means_that_an_address_is_enough(job: Job) -> None:
    assert job.command("wait", "--probe", "none", "--init-timeout", 5).ends() == 0


def test_the_ports_of_the_images_own_ssh_files_count(job: Job) -> None:
    for index in (0, 1):
        job.ports[index] = 2200 + index
    job.start(0, 1)
    job.address_file.write_text("".join(f"{job.name(i)} {job.addresses[i]}\n" for i in (0, 1)))
    (job.directory / ".ssh").mkdir()
    (job.directory / ".ssh" / "config").write_text("Host pi-worker-0*\n  Port 2200\nHost *\n  Port 2201\n")
    wait = job.command("wait", env={"HOME": str(job.directory)})
    assert wait.ends() == 0, wait.stderr


def test_a_signal_ends_the_wait(job: Job) -> None:
    launch = job.launch("true")
    launch.says("0/2 workers ready")
    launch.kill()
    assert launch.ends() == 143
    assert "ended by SIGTERM while waiting for workers (exit 143)" in launch.stderr


def test_progress_is_logged_at_most_once_a_second_and_only_if_it_is_new(job: Job) -> None:
    job.start(0)
    wait = job.command("wait", "--init-timeout", 5)
    assert wait.ends() == 124
    assert wait.stderr.count("1/2 workers ready") == 1


def test_a_terminal_shows_one_live_line(job: Job) -> None:
    job.start(0)
    ours, theirs = pty.openpty()
    files = ("--hostfile", str(job.hostfile), "--addresses", str(job.address_file), "--init-timeout", "2")
    command = [sys.executable, "-m", "mpiboot", "wait", *files]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = bytearray()
        with suppress(OSError):  # the end of a terminal is an error
            while data := os.read(ours, 4096):
                shown += data
        assert process.wait(PATIENCE) == 124
    os.close(ours)
    text = shown.decode()
    assert text.count("\r\x1b[K1/2 workers ready after") >= 5
    assert "\x1b[Kmpiboot: 1 of 2 workers not ready after " in text


def test_a_job_without_hosts_starts_at_once(job: Job) -> None:
    job.hostfile.write_text("# no hosts\n")
    launch = job.launch("echo", "ran")
    assert launch.ends() == 0
    assert launch.stdout == "ran\n"


def test_a_hostfile_that_does_not_exist_is_named(job: Job) -> None:
    job.hostfile.unlink()
    wait = job.command("wait")
    assert wait.ends() == 2
    assert f"the hostfile {job.hostfile} does not exist" in wait.stderr


def test_wrong_lines_of_addresses_are_left_out_and_reported(job: Job) -> None:
    job.start(0, 1)
    job.address_file.write_text(f"{job.name(0)} {job.addresses[0]} 99999\n{job.name(1)} somewhere\n")
    wait = job.command("wait")
    wait.says("ignored: ")
    assert f"{job.address_file}:1: '99999' is not a port" in wait.stderr
    assert f"{job.address_file}:2: 'somewhere' is not an IP address" in wait.stderr
    job.tell(0, 1)
    assert wait.ends() == 0


def test_the_launchers_own_line_is_not_waited_for(job: Job) -> None:
    job.start(0, 1)
    job.hostfile.write_text(f"{socket.gethostname()}.pi.default.svc slots=1\n" + job.hostfile.read_text())
    launch = job.launch("sh", "-c", 'cat "$PRTE_MCA_prte_default_hostfile"')
    assert launch.ends() == 0, launch.stderr
    assert launch.stdout.splitlines()[0] == f"{socket.gethostname()} slots=1"


def test_hosts_prints_the_workers_that_are_ready(job: Job) -> None:
    job.start(1)
    hosts = job.run("hosts", "--hostfile", job.hostfile, "--addresses", job.address_file)
    assert hosts.ends() == 0
    assert hosts.stdout == f"{job.name(1)}:2\n"


def test_the_list_of_an_elastic_job_is_kept_while_it_runs(job: Job) -> None:
    job.start(0, 1)
    job.tell(0)
    launch = job.launch("sleep", "infinity", options=("--min-workers", 1))
    eventually(lambda: list(job.directory.glob("mpiboot-launch-*/live-hosts")))
    [live] = job.directory.glob("mpiboot-launch-*/live-hosts")

    def listed() -> str:
        hosts = job.run("hosts", env={"MPIBOOT_LIVE_HOSTS": str(live)})
        assert hosts.ends() == 0
        return hosts.stdout

    assert listed() == f"{job.name(0)}:2\n"
    job.tell(0, 1)
    eventually(lambda: listed() == f"{job.name(0)}:2\n{job.name(1)}:2\n")
    config = (live.parent / "ssh_config").read_text()
    assert f"HostName {job.addresses[1]}" in config
    job.tell(1)
    eventually(lambda: listed() == f"{job.name(1)}:2\n")
    job.stop(1)
    eventually(lambda: listed() == "")
    launch.kill()
    assert launch.ends() == 143
