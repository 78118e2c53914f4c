"""A Docker engine for this machine: one that answers already, or one that root installs and starts."""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import services
from debian import Need, can_install, install, log

PARTS = ("docker-cli", "docker-buildx")  # newer docker.io only recommends them, and cannot build without them
DOCKER = Need("no Docker engine answers", ("docker.io", "containerd", "runc", "iptables"), PARTS)
# The first one starts the others.
UNITS = ("docker.service", "docker.socket", "containerd.service")
# An engine that needs longer counts as absent: a hung engine must not stop what works without one.
COMES_UP_WITHIN = 20.0
SOCKET = Path("/var/run/docker.sock")
SOURCES = Path(__file__).resolve().parent.parent / "src"
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
    """True when the engine that the user has chosen, or the local one, replies to a ping."""
    host = _chosen() or f"unix://{SOCKET}"
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


def _chosen() -> str:
    """The engine that DOCKER_HOST or a Docker context names, or that of rootless Docker; empty: Docker's own.

    This Python may lack what mpiboot requires; this module of it needs nothing.
    """
    sys.path.insert(0, str(SOURCES))
    try:
        from mpiboot.containers.endpoint import NoEngineError, endpoint
    finally:
        sys.path.pop(0)
    try:
        found = endpoint()
    except NoEngineError as error:
        log(str(error))
        return ""
    return found.url if found.source or found.found or "DOCKER_HOST" in os.environ else ""


def _cli_answers(limit: float) -> bool:
    with contextlib.suppress(subprocess.TimeoutExpired):
        return subprocess.run(["docker", "version"], capture_output=True, timeout=limit).returncode == 0
    return False


def is_allowed() -> bool:
    """Whether the user allows a Docker engine: MPIBOOT_ENGINE may forbid it."""
    return os.environ.get("MPIBOOT_ENGINE", "docker") == "docker"


def need() -> Need | None:
    """The packages that `provide` would install; None if an engine answers or DOCKER_HOST names one."""
    there = "DOCKER_HOST" in os.environ or shutil.which("dockerd") is not None
    return None if not is_allowed() or there or _is_closed_to_us() or answers() else DOCKER


def provide(state: Path) -> bool:
    """True when an engine answers in the end. The folder `state` records what this starts, for `stop`."""
    if not is_allowed():
        log(f"not using a Docker engine: MPIBOOT_ENGINE={os.environ['MPIBOOT_ENGINE']} forbids it")
        return False
    if answers():
        return True
    if host := os.environ.get("DOCKER_HOST"):
        log(f"no Docker engine answers at DOCKER_HOST={host}; unset it to use one on this machine")
        return False
    if _is_closed_to_us():
        log("this user may not use the Docker engine; run: sudo usermod -aG docker $USER; then log in again")
        return False
    if shutil.which("dockerd") is None and not install(DOCKER):
        log("continuing without containers")
        return False
    if not can_install():
        log("the Docker engine is not running; start it with: sudo systemctl start docker")
        return False
    return _start_by_systemd(state) if services.here() else _start(state)


def _is_closed_to_us() -> bool:
    return SOCKET.exists() and not os.access(SOCKET, os.W_OK)


def _start_by_systemd(state: Path) -> bool:
    log("starting the Docker engine: systemctl start docker (`make clean` stops it)")
    begun, record = time.monotonic(), state / "units"
    error = services.start(UNITS, record, COMES_UP_WITHIN)
    if not error and _answers_in_time(begun):
        return True
    _report_absent(begun, error)
    services.stop(record, wait=False)
    return False


def _start(state: Path) -> bool:
    state.mkdir(parents=True, exist_ok=True)
    # A killed engine leaves these files behind. If another process has such a pid now, dockerd would think that it is
    # an engine, or its containerd, and would not start.
    for pid_file, program in ((state / "dockerd.pid", "dockerd"), (CONTAINERD, "containerd")):
        if not _running_pid(pid_file, program):
            pid_file.unlink(missing_ok=True)
    log_file = state / "dockerd.log"
    log(f"starting a Docker engine (`make clean` ends it; its log is {log_file})")
    with log_file.open("wb") as output:
        command = ["dockerd", "--pidfile", str(state / "dockerd.pid")]
        daemon = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
    begun = time.monotonic()
    if _answers_in_time(begun, daemon):
        return True
    _report_absent(begun, *log_file.read_text(errors="replace").strip().splitlines()[-1:])
    _end(daemon.pid)
    return False


def _answers_in_time(begun: float, daemon: subprocess.Popen[bytes] | None = None) -> bool:
    """True when an engine answers in time. False at once when `daemon`, the engine's process, has ended."""
    deadline = begun + COMES_UP_WITHIN
    while (left := deadline - time.monotonic()) > 0:
        if answers(left):
            return True
        if daemon is not None and daemon.poll() is not None:
            break
        time.sleep(0.1)  # the pause between two tries, not a guess of how long the start takes
    return False


def _report_absent(begun: float, last: str = "") -> None:
    log(f"the Docker engine did not start within {time.monotonic() - begun:.0f} s; continuing without containers")
    if last:
        log(f"its last line: {last[:300]}")


def stop(state: Path) -> None:
    """End the engine that `provide` started, and no other."""
    services.stop(state / "units")
    pid_file = state / "dockerd.pid"
    if pid := _running_pid(pid_file, "dockerd"):
        log(f"ending the Docker engine that setup started (process {pid})")
        _end(pid)
    pid_file.unlink(missing_ok=True)


def _running_pid(pid_file: Path, program: str) -> int:
    """The pid in the file if that process runs this program; else 0."""
    with contextlib.suppress(OSError, ValueError):
        pid = int(pid_file.read_text())
        if Path(f"/proc/{pid}/comm").read_text().strip() == program:
            return pid
    return 0


def _end(pid: int, patience: float = 30.0) -> bool:
    """True once the process has ended: SIGTERM first, SIGKILL after `patience` seconds."""
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
