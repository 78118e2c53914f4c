"""`mpiboot worker`: as root and as another user, with good and bad keys, hardened, and ended by signals."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mpiboot.bootstrap.process import reaper
from tests.bootstrap.conftest import PORT
from tests.bootstrap.processes import eventually, state
from tests.conftest import missing

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.bootstrap.conftest import Job

GAMES = 5  # a user that every Debian has and whose account is not locked


def ssh(job: Job, script: str, index: int = 0, *options: str) -> subprocess.CompletedProcess[str]:
    """Log in as a launcher does, with host keys checked."""
    key = job.directory / "client-key"
    key.write_text((job.keys.launcher / "id_rsa").read_text())
    key.chmod(0o600)
    known = f"UserKnownHostsFile={job.keys.launcher}/known_hosts"
    where = ["-p", str(job.ports.get(index, PORT)), *options, job.addresses[index]]
    command = ["ssh", "-F", "none", "-i", str(key), "-o", known, "-o", "BatchMode=yes", *where, script]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_it_lets_the_launcher_in_and_shows_the_jobs_host_key(job: Job) -> None:
    job.start(0)
    done = ssh(job, "echo in")
    assert (done.returncode, done.stdout) == (0, "in\n"), done.stderr


def test_its_environment_reaches_the_ranks_whatever_is_in_it(job: Job) -> None:
    env = {
        "PLAIN": "1", "EMPTY": "", "QUOTES": "a \"b\" 'c'", "BACK": "\\n \\\\ end\\", "HASH": "# no comment",
        "DOLLAR": "$HOME `x` %h", "TAB": "a\tb", "WORDS": "  two  words ", "MARKS": "ä€",
        "MPIBOOT_TOKEN": "s3cret", "HOSTNAME": "me", "LINES": "1\n2",
    }  # fmt: skip
    job.start(0, env=env)
    done = ssh(job, "exec cat /proc/self/environ")
    told = dict(entry.partition("=")[::2] for entry in done.stdout.split("\0") if entry)
    for name in ("PLAIN", "EMPTY", "QUOTES", "BACK", "HASH", "DOLLAR", "TAB", "WORDS", "MARKS"):
        assert told.get(name) == env[name], name
    for name in ("MPIBOOT_TOKEN", "HOSTNAME", "LINES"):
        assert name not in told


def test_a_worker_without_a_host_key_makes_one_of_its_own(job: Job, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "authorized_keys").write_text((job.keys.worker / "authorized_keys").read_text())
    job.keys = type(job.keys)(job.keys.launcher, bare)
    job.start(0)
    assert "Host key verification failed" in ssh(job, "true").stderr
    assert ssh(job, "true", 0, "-o", "UserKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=no").returncode == 0


def test_a_worker_that_mounts_nothing_has_its_keys_in_variables_and_keeps_them_to_itself(job: Job) -> None:
    keys = {"MPIBOOT_HOST_KEY": "id_rsa", "MPIBOOT_AUTHORIZED_KEYS": "authorized_keys"}
    env = {name: (job.keys.worker / file).read_text() for name, file in keys.items()}
    empty = job.directory / "empty"
    empty.mkdir()
    launchers, job.keys = job.keys, type(job.keys)(job.keys.launcher, empty)
    job.start(0, env=env)
    job.keys = launchers
    done = ssh(job, "env; cat /proc/$PPID/environ")  # its own, and that of the sshd above it
    assert done.returncode == 0, done.stderr
    assert not [name for name in keys if name in done.stdout]
    assert "PRIVATE KEY" not in done.stdout


def as_other(job: Job) -> None:
    """From here on workers run as another user. It can read the keys, and write only in a directory of its own."""
    if os.geteuid() != 0:
        missing("root, to start a worker as another user", "sudo make test")
    for path in (*job.keys.worker.parents, job.keys.worker, *job.keys.worker.iterdir()):
        if path.is_relative_to("/tmp") and path != Path("/tmp"):
            path.chmod(0o755 if path.is_dir() else 0o444)
    for path in job.directory.parents:
        if path != Path("/tmp") and path.is_relative_to("/tmp"):
            path.chmod(0o755)
    job.directory.chmod(0o777)


def interpreter_for_others() -> str:
    """A Python that any user can run; this one may live in root's home."""
    return "/usr/bin/python3"


def other_user(job: Job, *arguments: str) -> tuple[str, ...]:
    """The command line of a worker as such a user, for `Run`."""
    source = Path(__file__).resolve().parents[2] / "src"
    readable = f"{job.directory}/package"
    subprocess.run(["cp", "-rL", str(source), readable], check=True)
    subprocess.run(["chmod", "-R", "a+rX", readable], check=True)
    drop = ("setpriv", f"--reuid={GAMES}", f"--regid={GAMES}", "--clear-groups", "--bounding-set=-all")
    hardened = (*drop, "--no-new-privs", "env", f"PYTHONPATH={readable}", interpreter_for_others())
    return (*hardened, "-m", "mpiboot", "worker", *arguments)


def test_it_runs_as_another_user_without_capabilities(job: Job, tmp_path: Path) -> None:
    as_other(job)
    where = ("--ssh-dir", str(job.keys.worker), "--listen", job.addresses[0])
    worker = job.run(*other_user(job, *where), program=())
    worker.says("SSH listens")
    done = ssh(job, "id -u", 0, "-l", "games")
    # The shell of a system user refuses commands. What matters is that sshd accepted the key.
    assert "Accepted publickey for games" in worker.stderr, done.stderr
    worker.kill()
    assert worker.ends() == 128 + signal.SIGTERM
    assert list(tmp_path.glob("mpiboot-worker-*")) == []


def test_keys_that_cannot_be_read_are_named(job: Job) -> None:
    as_other(job)
    (job.keys.worker / "id_rsa").chmod(0o600)
    worker = job.run(*other_user(job, "--ssh-dir", str(job.keys.worker), "--listen", job.addresses[0]), program=())
    assert worker.ends() == 2
    assert f"cannot read {job.keys.worker}/id_rsa: Permission denied; this is user {GAMES}" in worker.stderr
    assert "the file belongs to user 0 with mode 0600" in worker.stderr
    (job.keys.worker / "id_rsa").chmod(0o644)


@pytest.mark.parametrize("text", [None, "", "\n"])
def test_keys_that_are_missing_or_empty_are_named(job: Job, tmp_path: Path, text: str | None) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    if text is not None:
        (empty / "authorized_keys").write_text(text)
    worker = job.run("worker", "--ssh-dir", empty, "--listen", job.addresses[0])
    assert worker.ends() == 2
    assert f"authorized_keys is {'missing' if text is None else 'empty'} (in {empty})" in worker.stderr
    assert len(worker.stderr.splitlines()) == 1


def test_root_without_the_capabilities_of_a_login_says_so(job: Job) -> None:
    if os.geteuid() != 0:
        missing("root, to drop capabilities", "sudo make test")
    prefix = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
    worker = job.run("worker", "--ssh-dir", job.keys.worker, "--listen", job.addresses[0], prefix=prefix)
    assert worker.ends() == 2
    assert "root without the capabilities SETGID, SETUID, SYS_CHROOT cannot serve SSH logins" in worker.stderr


def test_a_malformed_key_ends_with_sshds_own_message(job: Job, tmp_path: Path) -> None:
    odd = tmp_path / "odd"
    odd.mkdir()
    (odd / "authorized_keys").write_text("x")
    (odd / "id_rsa").write_text("this is no key\n")
    worker = job.run("worker", "--ssh-dir", odd, "--listen", job.addresses[0])
    assert worker.ends() not in (0, 2)
    assert "sshd ended with code" in worker.stderr
    assert "before it listened" in worker.stderr


def test_a_port_in_use_is_named(job: Job) -> None:
    with socket.create_server((job.addresses[0], PORT)):
        worker = job.run("worker", "--ssh-dir", job.keys.worker, "--listen", job.addresses[0])
        assert worker.ends() == 2
    assert f"port {PORT} is in use already" in worker.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(job: Job, number: int) -> None:
    job.start(0)
    worker = job.workers[0]
    worker.kill(number)
    assert worker.ends() == 128 + number
    assert list(job.directory.glob("mpiboot-worker-*")) == []
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((job.addresses[0], PORT), timeout=5)


def test_what_runs_in_a_worker_ends_with_it(job: Job, tmp_path: Path) -> None:
    job.start(0)
    script = f"echo $$ > {tmp_path}/pid; exec sleep 600"
    assert ssh(job, f"setsid sh -c '{script}' >/dev/null 2>&1 </dev/null &").returncode == 0
    eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    job.stop(0)
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_orphans_are_collected(job: Job, tmp_path: Path) -> None:
    job.start(0)
    assert ssh(job, f"(sh -c 'sleep 0.2; echo > {tmp_path}/done' >/dev/null 2>&1 &)").returncode == 0
    eventually((tmp_path / "done").exists)
    worker = job.workers[0].popen.pid
    eventually(lambda: not [pid for pid in reaper.children(worker) if state(pid) == "Z"])


def test_an_sshd_that_dies_ends_the_worker(job: Job) -> None:
    job.start(0)
    [sshd] = [pid for pid in reaper.children(job.workers[0].popen.pid) if state(pid) != "Z"]
    os.kill(sshd, signal.SIGKILL)
    assert job.workers[0].ends() == 137
    assert "sshd ended with code 137" in job.workers[0].stderr


def test_it_works_where_only_tmp_can_be_written(job: Job, program: Callable[[str], str]) -> None:
    if os.geteuid() != 0:
        missing("root, for a read-only file system", "sudo make test")
    program("unshare")
    # /proc keeps its own mount; pytest's directories are in /tmp.
    inner = 'mount --bind / /mnt 2>/dev/null; mount -o remount,bind,ro / && exec "$@"'
    outer = f"mount --bind {job.directory} {job.directory} && {inner}"
    prefix = ("unshare", "-m", "sh", "-c", outer, "sh")
    worker = job.run("worker", "--ssh-dir", job.keys.worker, "--listen", job.addresses[0], prefix=prefix)
    worker.says("SSH listens")
    assert ssh(job, "true").returncode == 0


def test_two_thousand_sessions_would_be_let_in(job: Job) -> None:
    """No limit of sshd's own stands in the way of an mpirun that opens all its connections at once."""
    job.start(0)
    [config] = job.directory.glob("mpiboot-worker-*/sshd_config")
    test = subprocess.run(["/usr/sbin/sshd", "-T", "-f", config], capture_output=True, text=True, timeout=60)
    told = dict(line.split(maxsplit=1) for line in test.stdout.splitlines() if " " in line)
    assert (told["maxstartups"], told["maxsessions"]) == ("1000:30:2000", "1000")
    assert (told["passwordauthentication"], told["usepam"]) == ("no", "no")
