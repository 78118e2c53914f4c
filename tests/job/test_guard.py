"""The script that waits before a foreign launcher's command, with each shell: what it asks, and when it begins."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest

from mpiboot.checkin.authority import Credentials
from mpiboot.checkin.roster import Pod, View
from mpiboot.checkin.server import CheckinServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GUARD = Path(__file__).resolve().parents[2] / "job" / "plan" / "guard.sh"
HOSTS = ("pi-worker-0.pi.default.svc", "pi-worker-1.pi.default.svc")
PATIENCE = 60.0


class Greeter:
    """A port that greets like sshd, and counts who came."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        self.calls = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                peer, _ = self._socket.accept()
                self.calls += 1
                with peer:
                    peer.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # closing alone would not wake the thread
        self._thread.join(PATIENCE)
        self._socket.close()


class Operator:
    """The operator's check-in server for one job, with the pods that a test lets it see."""

    def __init__(self) -> None:
        self._view = View(HOSTS)
        self._loop = asyncio.new_event_loop()
        self._server = CheckinServer(self)
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.port = asyncio.run_coroutine_threadsafe(self._server.start("127.0.0.1"), self._loop).result(PATIENCE)

    async def credentials(self, job: str) -> Credentials | None:
        return Credentials("uid", "token") if job == "default/pi" else None

    def view(self, job: str) -> View | None:
        return self._view if job == "default/pi" else None

    def shows(self, **pods: Pod) -> None:
        """The workers by `worker_0=...`."""
        self._view = View(HOSTS, {int(name.rpartition("_")[2]): pod for name, pod in pods.items()})
        self._loop.call_soon_threadsafe(self._server.observe, "default/pi", self._view)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._server.close(), self._loop).result(PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()


class Guard:
    """The script as a process, with a PATH of programs that a test chooses."""

    def __init__(self, folder: Path, shell: str, environment: dict[str, str], command: tuple[str, ...]) -> None:
        (folder / "hostfile").write_text("".join(f"{host} slots=1\n" for host in HOSTS))
        self.output = folder / "output"
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                [str(folder / "bin" / shell), str(GUARD), *command], stdout=output, stderr=output,
                stdin=subprocess.DEVNULL, cwd=folder, start_new_session=True,
                env={"PATH": str(folder / "bin"), "MPIBOOT_HOSTFILE": str(folder / "hostfile"), **environment})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, 9)
        self.process.wait()

    def prints(self, text: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while text not in self.output.read_text():
            assert time.monotonic() < deadline, self.output.read_text()
            time.sleep(0.02)

    def ends(self) -> int:
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            pytest.fail(self.output.read_text())


@pytest.fixture
def greeter() -> Iterator[Greeter]:
    greeter = Greeter()
    yield greeter
    greeter.close()


@pytest.fixture
def operator() -> Iterator[Operator]:
    operator = Operator()
    yield operator
    operator.close()


@pytest.fixture
def guard(tmp_path: Path, greeter: Greeter) -> Callable[..., Guard]:
    """`guard("bash" | "dash", *command, **environment)`: in an image with this shell. Every use of DNS or ssh is noted.

    `ssh -G` tells the greeter's port; a login and a name succeed once there is a file of the host's name in `known`.
    DNS remembers names that it did not know.
    """
    programs = tmp_path / "bin"
    programs.mkdir()
    (tmp_path / "known").mkdir()

    def make(shell: str, *command: str, **environment: str) -> Guard:
        for name in ("cat", "sleep", "mktemp", "rm", "echo", "env", shell):
            found = shutil.which(name)
            assert found
            (programs / name).symlink_to(found)
        head = f"#!{shutil.which('dash')}\necho \"${{0##*/}} $*\" >>{tmp_path}/asked\n"
        (programs / "ssh").write_text(
            f'{head}[ "$1" != -G ] || exec echo port {greeter.port}\n'
            f'while [ $# -gt 2 ]; do shift; done\n[ -e "{tmp_path}/known/$1" ] || exit 255\n')
        # A name server that was asked too early answers "no such name" for longer than any test waits.
        (programs / "getent").write_text(
            f'{head}[ ! -e "{tmp_path}/missing.$2" ] || exit 2\n'
            f'[ -e "{tmp_path}/known/$2" ] || {{ echo >"{tmp_path}/missing.$2"; exit 2; }}\n')
        for name in ("ssh", "getent"):
            (programs / name).chmod(0o755)
        return Guard(tmp_path, shell, environment, command or ("echo", "it runs"))

    return make


def asked(folder: Path) -> list[str]:
    """The questions to DNS, and logins."""
    path = folder / "asked"
    return [line for line in path.read_text().splitlines() if " -G " not in line] if path.exists() else []


def checkin(operator: Operator) -> dict[str, str]:
    return {"MPIBOOT_CHECKIN": f"http://127.0.0.1:{operator.port}", "MPIBOOT_JOB": "default/pi",
            "MPIBOOT_TOKEN": "token"}


RUNS = Pod("running", "1", "127.0.0.1")


def test_the_command_begins_when_the_operator_knows_all_workers_and_they_answer(
    guard: Callable[..., Guard], operator: Operator, greeter: Greeter, tmp_path: Path
) -> None:
    late = Pod("pending", "2", reason="ImagePullBackOff: no such image")
    operator.shows(worker_0=RUNS, worker_1=late)
    (tmp_path / "known" / HOSTS[0]).touch()
    with guard("bash", "env", **checkin(operator)) as launcher:
        launcher.prints("mpiboot: 1/2 workers answer; waiting for pi-worker-1 (ImagePullBackOff: no such image)")
        # A name server remembers names that it did not know: it is asked only about workers that it knows.
        assert {line for line in asked(tmp_path) if "worker-1" in line} == set()
        (tmp_path / "known" / HOSTS[1]).touch()
        operator.shows(worker_0=RUNS, worker_1=RUNS)
        assert launcher.ends() == 0
    printed = launcher.output.read_text()
    assert "mpiboot: 2 of 2 workers ready after " in printed
    assert "MPIBOOT_JOB=default/pi" in printed
    assert "token" not in printed.lower()  # it is the operator's and the script's
    assert greeter.calls == 2


def test_without_bash_it_reads_the_addresses_file_and_logs_in(guard: Callable[..., Guard], tmp_path: Path) -> None:
    addresses = tmp_path / "addresses"
    addresses.write_text("")
    for host in HOSTS:
        (tmp_path / "known" / host).touch()
    with guard("dash", MPIBOOT_ADDRESSES=str(addresses)) as launcher:
        launcher.prints("0/2 workers answer; waiting for pi-worker-0, pi-worker-1")
        assert asked(tmp_path) == []
        addresses.write_text("".join(f"{host} 10.1.2.3\n" for host in HOSTS))
        assert launcher.ends() == 0
    assert launcher.output.read_text().endswith("it runs\n")
    assert len([line for line in asked(tmp_path) if line.startswith("ssh ")]) == 2


def test_without_an_operator_it_asks_dns(guard: Callable[..., Guard], tmp_path: Path) -> None:
    with guard("bash") as launcher:
        launcher.prints("0/2 workers answer")
        for host in HOSTS:
            (tmp_path / "known" / host).touch()
        assert launcher.ends() == 0


def test_a_time_limit_ends_the_waiting_with_124(guard: Callable[..., Guard]) -> None:
    with guard("dash", MPIBOOT_INIT_TIMEOUT="2") as launcher:
        assert launcher.ends() == 124
    assert "2 of 2 workers do not answer after 2 s: pi-worker-0, pi-worker-1" in launcher.output.read_text()


@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_it_reports_a_missing_program_at_once(guard: Callable[..., Guard], shell: str) -> None:
    with guard(shell, "mpirum", "-n", "2") as launcher:
        assert launcher.ends() == 127
    assert launcher.output.read_text() == "mpiboot: the launcher's image has no program mpirum\n"


@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_it_ends_at_a_signal_and_leaves_nothing(guard: Callable[..., Guard], shell: str, operator: Operator) -> None:
    with guard(shell, **checkin(operator)) as launcher:
        launcher.prints("0/2 workers answer")
        launcher.process.terminate()
        assert launcher.ends() == 143
