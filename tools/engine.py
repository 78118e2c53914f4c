"""A Docker engine for this machine: the one that answers, else one that root installs and starts."""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import services
from debian import Need, can_install, install, say

PARTS = ("docker-cli", "docker-buildx")  # recommended by newer docker.io, which does not build without
DOCKER = Need("no Docker engine answers", ("docker.io", "containerd", "runc", "iptables"), PARTS)
# What starts with the first of them.
UNITS = ("docker.service", "docker.socket", "containerd.service")
# Slower than this counts as absent: a hung engine must not stop what can go on without one.
COMES_UP_WITHIN = 20.0
SOCKET = Path("/var/run/docker.sock")
CONTAINERD = Path("/var/run/docker/containerd/containerd.pid")


class _SocketConnection(http.client.HTTPConnection):
    def __init__(self, path: str, limit: float) -> None:
        super().__init__("localhost", timeout=limit)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def answers(limit: float = COMES_UP_WITHIN) -> bool:
    """True when the engine that DOCKER_HOST names, or the local one, replies to a ping."""
    host = os.environ.get("DOCKER_HOST", f"unix://{SOCKET}")
    if not host.startswith("unix://"):
        return shutil.which("docker") is not None and _cli_answers(limit)
    connection = _SocketConnection(host.removeprefix("unix://"), limit)
    try:
        connection.request("GET", "/_ping")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _cli_answers(limit: float) -> bool:
    with contextlib.suppress(subprocess.TimeoutExpired):
        return subprocess.run(["docker", "version"], capture_output=True, timeout=limit).returncode == 0
    return False


def is_wanted() -> bool:
    """Whether the user has not said that there shall be none."""
    return os.environ.get("MPIBOOT_ENGINE", "docker") == "docker"


def need() -> Need | None:
    """The packages that `provide` would install; none where an engine is there, or another one is named."""
    there = "DOCKER_HOST" in os.environ or shutil.which("dockerd") is not None
    return None if not is_wanted() or there or _is_for_others() or answers() else DOCKER


def provide(state: Path) -> bool:
    """True when an engine answers in the end. What this starts is noted under `state`, for `stop`."""
    if not is_wanted():
        say(f"no Docker engine is looked for: MPIBOOT_ENGINE={os.environ['MPIBOOT_ENGINE']}")
        return False
    if answers():
        return True
    if host := os.environ.get("DOCKER_HOST"):
        say(f"no Docker engine answers at DOCKER_HOST={host}; unset it to use one on this machine")
        return False
    if _is_for_others():
        say("a Docker engine is there, but not for this user; get in with: sudo usermod -aG docker $USER; log in anew")
        return False
    if shutil.which("dockerd") is None and not install(DOCKER):
        say("going on without containers")
        return False
    if not can_install():
        say("the Docker engine is not running; start it with: sudo systemctl start docker")
        return False
    return _start_by_systemd(state) if services.here() else _start(state)


def _is_for_others() -> bool:
    return SOCKET.exists() and not os.access(SOCKET, os.W_OK)


def _start_by_systemd(state: Path) -> bool:
    say("starting the Docker engine: systemctl start docker (`make clean` stops it)")
    begun, note = time.monotonic(), state / "units"
    complaint = services.start(UNITS, note, COMES_UP_WITHIN)
    if not complaint and _comes_up(begun):
        return True
    _say_absent(begun, complaint)
    services.stop(note, wait=False)
    return False


def _start(state: Path) -> bool:
    state.mkdir(parents=True, exist_ok=True)
    # An engine that was killed leaves these behind. Where another process has such a number by now, dockerd would take
    # it for an engine, or for its containerd, and not start.
    for note, program in ((state / "dockerd.pid", "dockerd"), (CONTAINERD, "containerd")):
        if not _is_running(note, program):
            note.unlink(missing_ok=True)
    log = state / "dockerd.log"
    say(f"starting a Docker engine (`make clean` ends it; its log is {log})")
    with log.open("wb") as output:
        command = ["dockerd", "--pidfile", str(state / "dockerd.pid")]
        daemon = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
    begun = time.monotonic()
    if _comes_up(begun, daemon):
        return True
    _say_absent(begun, *log.read_text(errors="replace").strip().splitlines()[-1:])
    _end(daemon.pid)
    return False


def _comes_up(begun: float, daemon: subprocess.Popen[bytes] | None = None) -> bool:
    """True when an engine answers in time; soon False when `daemon`, which should become it, has ended."""
    deadline = begun + COMES_UP_WITHIN
    while (left := deadline - time.monotonic()) > 0:
        if answers(left):
            return True
        if daemon is not None and daemon.poll() is not None:
            break
        time.sleep(0.1)  # the pace of asking, not a guess of how long it takes
    return False


def _say_absent(begun: float, last: str = "") -> None:
    say(f"the Docker engine did not come up in {time.monotonic() - begun:.0f} s; going on without containers")
    if last:
        say(f"its last line: {last[:300]}")


def stop(state: Path) -> None:
    """End the engine that `provide` started, and no other."""
    services.stop(state / "units")
    note = state / "dockerd.pid"
    if pid := _is_running(note, "dockerd"):
        say(f"ending the Docker engine that setup started (process {pid})")
        _end(pid)
    note.unlink(missing_ok=True)


def _is_running(note: Path, program: str) -> int:
    """The process that a file names, if it is that program; else 0."""
    with contextlib.suppress(OSError, ValueError):
        pid = int(note.read_text())
        if Path(f"/proc/{pid}/comm").read_text().strip() == program:
            return pid
    return 0


def _end(pid: int, patience: float = 30.0) -> bool:
    """True once the process is gone; asked first, then made to."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
            if not Path(f"/proc/{pid}").exists():
                return True
            time.sleep(0.1)
    return False
