"""An engine that goes away under a running job, and one that refuses: a text and an exit code, no stack trace."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import docker

    from tests.engines.conftest import Running

REAL = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")


class Cable:
    """A socket that leads to the real engine until it is cut."""

    def __init__(self, path: Path) -> None:
        self.url = f"unix://{path}"
        self._open: list[socket.socket] = []
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen(50)
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        for end in [self._server, *self._open]:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._server.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(REAL.removeprefix("unix://"))
                self._open += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=_pump, args=(one, other), daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@pytest.fixture
def cable(tmp_path: Path, docker_engine: docker.DockerClient) -> Iterator[Cable]:
    assert docker_engine.ping()
    if not REAL.startswith("unix://"):
        pytest.skip("needs an engine behind a socket file, to stand in between")
    made = Cable(tmp_path / "engine.sock")
    yield made
    made.cut()


def test_an_engine_that_goes_away_under_a_running_job(
    start: Callable[..., Running], image: Callable[[str], str], manifest: Callable[..., str], name: str, cable: Cable,
    mpiboot: Callable[..., subprocess.CompletedProcess[str]], nothing_left: Callable[[], None],
) -> None:  # fmt: skip
    job = manifest("echo up; exec sleep 100", image("openmpi"))
    running = start("run", "--engine", "docker", "-f", job, env={"DOCKER_HOST": cable.url})
    running.wait_for("up")
    cable.cut()
    assert running.end() == 1
    said = "".join(running.err)
    assert "the Docker engine stopped answering while" in said
    assert "mpiboot ps" in said
    assert "Traceback" not in said
    assert mpiboot("delete", name, "--engine", "docker").returncode == 0
    nothing_left()


def test_a_refusal_of_the_engine_is_printed_in_its_words(
    mpiboot: Callable[..., subprocess.CompletedProcess[str]], image: Callable[[str], str], manifest: Callable[..., str],
    nothing_left: Callable[[], None],
) -> None:  # fmt: skip
    job = manifest("true", image("openmpi"), launcher={"workingDir": "not/absolute"})
    done = mpiboot("run", "--engine", "docker", "-f", job)
    assert done.returncode in {1, 2}
    assert "not/absolute" in done.stderr
    assert "Traceback" not in done.stderr
    nothing_left()


def test_a_container_that_exceeds_its_memory_limit_ends_with_that_reason(
    mpiboot: Callable[..., subprocess.CompletedProcess[str]], image: Callable[[str], str], manifest: Callable[..., str],
    nothing_left: Callable[[], None],
) -> None:  # fmt: skip
    job = manifest("exec python3 -c 'print(len(b\"x\" * 500_000_000))'", image("openmpi"),
                   launcher={"resources": {"limits": {"memory": "64Mi"}}})  # fmt: skip
    done = mpiboot("run", "--engine", "docker", "-f", job)
    assert done.returncode == 137
    assert "more memory than its limit allows" in done.stderr
    nothing_left()
