"""`mpiboot logs` while a job runs, on each engine."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.engines.conftest import Running


@pytest.mark.usefixtures("state")
@pytest.mark.parametrize("engine", ["docker", "local"])
def test_following_ends_when_the_reader_goes_away(
    engine: str, start: Callable[..., Running], manifest: Callable[..., str], name: str,
    request: pytest.FixtureRequest, program: Callable[[str], str],
) -> None:  # fmt: skip
    program("sshd")
    image = "this-machine" if engine == "local" else request.getfixturevalue("image")("openmpi")
    running = start("run", "--engine", engine, "-f", manifest("while :; do echo more; sleep 0.05; done", image))
    running.wait_for("more")
    argv = [sys.executable, "-m", "mpiboot", "logs", "-f", "-q", "--engine", engine, name]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as follower:
        assert follower.stdout
        assert follower.stderr
        assert follower.stdout.readline() == "more\n"
        follower.stdout.close()
        assert follower.wait(30) == 141
        assert "Traceback" not in follower.stderr.read()
    assert running.process.poll() is None
