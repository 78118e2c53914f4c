"""How the command ends: on bad input, by signals, with an engine that dies; and that nothing is left behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from mpiboot.images.check.sandbox import LABEL, OWNER_LABEL
from mpiboot.images.contract import POINTS
from tests.foreign.build import FOREIGN, build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import docker

    Cli = Callable[..., subprocess.CompletedProcess[str]]

PATIENCE = 60.0


def refused(process: subprocess.CompletedProcess[str]) -> str:
    """The one line that a user gets for bad input."""
    assert (process.returncode, process.stdout) == (2, "")
    assert process.stderr.startswith("mpiboot: ")
    assert len(process.stderr.splitlines()) == 1
    return process.stderr


def leftovers(engine: docker.DockerClient, pid: int) -> list[str]:
    """What the check of that process has not removed."""
    mine: dict[str, str | list[str] | bool] = {"label": f"{OWNER_LABEL}={pid}"}
    containers = engine.containers.list(all=True, filters=mine, ignore_removed=True)
    networks = [network.name for network in engine.networks.list(filters=mine)]
    volumes = [volume.name for volume in engine.volumes.list(filters=mine)]
    return [str(name) for name in (*(container.name for container in containers), *networks, *volumes)]


def started(image: str, *options: str, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "mpiboot", "images", "check", image, *options]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env={**os.environ, **environment})


def until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, f"ended before anything could be seen: {process.communicate()}"
        assert time.monotonic() < deadline, "never happened"
        time.sleep(0.02)


def test_missing_image_names_its_neighbours(mpiboot: Cli, foreign: Callable[[str], str]) -> None:
    tag = foreign("shellless")
    assert tag in refused(mpiboot("images", "check", tag.replace("shellless:latest", "shelless")))


def test_missing_image_without_neighbours_says_how_to_get_it(mpiboot: Cli, docker_engine: docker.DockerClient) -> None:
    assert docker_engine.ping()
    assert "docker pull qqqqqqqq/zzzzzzzz" in refused(mpiboot("images", "check", "qqqqqqqq/zzzzzzzz"))


@pytest.mark.parametrize("name", ["", "UPPER case", "a:b:c", "--", "-x/y", "\n"])
def test_malformed_name_is_refused(mpiboot: Cli, docker_engine: docker.DockerClient, name: str) -> None:
    assert docker_engine.ping()
    process = mpiboot("images", "check", "--", name)
    assert process.returncode == 2
    assert "Traceback" not in process.stderr


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_image_without_a_shell_is_refused(
    mpiboot: Cli, foreign: Callable[[str], str], options: tuple[str, ...]
) -> None:
    tag = foreign("shellless")
    said = refused(mpiboot("images", "check", tag, *options))
    assert tag in said
    assert "/bin/sh does not start" in said
    assert POINTS["shell"].fix in said


def test_other_architecture_is_refused(mpiboot: Cli, docker_engine: docker.DockerClient) -> None:
    mine = docker_engine.version()["Arch"]
    other = "arm64" if mine == "amd64" else "amd64"
    tag = build(docker_engine, FOREIGN / "shellless", tag="other-architecture", platform=f"linux/{other}")
    said = refused(mpiboot("images", "check", tag))
    assert f"linux/{other}" in said
    assert f"linux/{mine}" in said


def test_stopped_engine_ends_the_check_with_its_address(mpiboot: Cli, tmp_path: Path) -> None:
    where = f"unix://{tmp_path}/no-engine.sock"
    assert where in refused(mpiboot("images", "check", "any/image", env={**os.environ, "DOCKER_HOST": where}))


@pytest.mark.parametrize("option", [("--limit", "0"), ("--limit", "soon"), ("--require", "everything")])
def test_bad_option_is_refused(mpiboot: Cli, option: tuple[str, str]) -> None:
    process = mpiboot("images", "check", "any/image", *option)
    assert process.returncode == 2
    assert option[0] in process.stderr


def test_limit_ends_what_hangs_and_names_the_step(
    mpiboot: Cli, foreign: Callable[[str], str]
) -> None:
    # One second is not enough for any image to get through all steps.
    process = mpiboot("images", "check", foreign("guide"), "--limit", "1")
    assert process.returncode == 1
    assert "no end after 1 s (--limit)" in process.stdout


def test_limit_ends_a_look_that_hangs(docker_engine: docker.DockerClient, foreign: Callable[[str], str]) -> None:
    process = started(foreign("hanging"), "--limit", "8", "--json")
    try:
        out, error = process.communicate(timeout=PATIENCE)
    finally:
        process.terminate()  # if it hangs itself
    assert (process.returncode, error, leftovers(docker_engine, process.pid)) == (1, "", [])
    report = json.loads(out)
    found = {point["id"]: (point["status"], point["saw"]) for point in report["points"]}
    assert report["unfinished"] == "no end after 8 s (--limit)"
    assert found["mpirun"] == ("fault", report["unfinished"])
    assert found["sshd"][0] == "ok"
    assert {status for status, _ in found.values()} == {"ok", "fault", "not checked"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["network", "container", "running"])
def test_signal_leaves_nothing(
    docker_engine: docker.DockerClient, foreign: Callable[[str], str], number: signal.Signals, moment: str
) -> None:
    process = started(foreign("guide"))
    mine: dict[str, str | list[str] | bool] = {"label": f"{OWNER_LABEL}={process.pid}"}
    seen: dict[str, Callable[[], bool]] = {
        "network": lambda: bool(docker_engine.networks.list(filters=mine)),
        "container": lambda: bool(docker_engine.api.containers(all=True, filters=mine)),
        "running": lambda: len(docker_engine.api.containers(filters=mine)) > 3,
    }
    until(seen[moment], process)

    process.send_signal(number)
    time.sleep(0.1)
    process.send_signal(number)  # who is impatient must not stop the clean-up
    out, error = process.communicate(timeout=PATIENCE)

    assert process.returncode == 128 + number
    assert leftovers(docker_engine, process.pid) == []
    assert (out, "Traceback" in error) == ("", False)


def test_finished_check_leaves_nothing(docker_engine: docker.DockerClient, foreign: Callable[[str], str]) -> None:
    process = started(foreign("misconfigured"))
    process.communicate(timeout=PATIENCE)
    assert (process.returncode, leftovers(docker_engine, process.pid)) == (1, [])


class Engine:
    """A way to the engine that can be cut."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(50)
        self._open: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                here, _ = self._listener.accept()
            except OSError:
                return
            there = socket.socket(socket.AF_UNIX)
            there.connect("/var/run/docker.sock")
            self._open += [here, there]
            for source, sink in ((here, there), (there, here)):
                threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    @staticmethod
    def _copy(source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def die(self) -> None:
        with contextlib.suppress(OSError):  # dead already
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread in accept(); close alone does not
        self._listener.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()


@pytest.fixture
def mortal_engine(docker_engine: docker.DockerClient, tmp_path: Path) -> Iterator[Engine]:
    assert docker_engine.ping()
    engine = Engine(f"{tmp_path}/engine.sock")
    yield engine
    engine.die()


def test_engine_that_dies_ends_the_check_in_one_line(
    docker_engine: docker.DockerClient, mortal_engine: Engine, foreign: Callable[[str], str]
) -> None:
    process = started(foreign("guide"), DOCKER_HOST=f"unix://{mortal_engine.path}")
    mine: dict[str, str | list[str] | bool] = {"label": f"{OWNER_LABEL}={process.pid}"}
    try:
        until(lambda: len(docker_engine.api.containers(filters=mine)) > 2, process)
        mortal_engine.die()
        out, error = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out, len(error.splitlines())) == (2, "", 1)
        assert LABEL in error
    finally:
        # The engine was there all the time, only not for the check, which could not remove its things.
        process.kill()
        process.wait()
        for container in docker_engine.containers.list(all=True, filters=mine, ignore_removed=True):
            container.remove(force=True, v=True)
        docker_engine.networks.prune(filters=mine)
        docker_engine.volumes.prune(filters=mine)
