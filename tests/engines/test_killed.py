"""Nothing is left behind, whenever a job is ended: signals at many points between its start and its end."""

from __future__ import annotations

import re
import signal
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from tests.engines.conftest import Running

# Milliseconds after the start of Python. The interesting points lie between the first request to the engine and the
# running launcher, and where they are depends on the machine: many points, not chosen ones.
POINTS = (150, 250, 300, 350, 400, 500, 600, 800, 1000, 1300, 1700, 2500)
SCRIPT = "echo up; exec sleep 100"


def ended(running: Running, number: int) -> None:
    """It ends by the signal, without a stack trace."""
    code = running.end()
    said = "".join(running.err)
    if "KeyboardInterrupt" in said and "mpiboot/engines" not in said:
        return  # Python itself was still starting: nothing of ours had run
    assert code in {128 + number, -number, 130}, said  # -N: no handler was set yet
    assert "Traceback" not in said


@pytest.mark.parametrize("milliseconds", POINTS)
def test_on_docker(
    start: Callable[..., Running], image: Callable[[str], str], manifest: Callable[..., str], milliseconds: int,
    nothing_left: Callable[[], None],
) -> None:  # fmt: skip
    number = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)[milliseconds % 3]
    running = start("run", "--engine", "docker", "-f", manifest(SCRIPT, image("openmpi"), workers=2))
    time.sleep(milliseconds / 1000)  # the point is the test's parameter, not a guess at readiness
    running.process.send_signal(number)
    ended(running, number)
    nothing_left()


@pytest.mark.parametrize("milliseconds", POINTS)
def test_on_this_machine(
    start: Callable[..., Running], manifest: Callable[..., str], milliseconds: int, no_traces: Callable[[], None],
    program: Callable[[str], str], mpiboot: Callable[..., subprocess.CompletedProcess[str]], name: str,
) -> None:  # fmt: skip
    program("sshd")
    number = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)[milliseconds % 3]
    running = start("run", "--engine", "local", "-f", manifest(SCRIPT, workers=2))
    time.sleep(milliseconds / 1000)
    running.process.send_signal(number)
    ended(running, number)
    if number == signal.SIGKILL:
        # Processes and keys went by themselves; only the entry of the job is left.
        mpiboot("delete", name, "--engine", "local")
    no_traces()


def test_twice_on_docker_is_killed_at_once(
    start: Callable[..., Running], image: Callable[[str], str], manifest: Callable[..., str],
    nothing_left: Callable[[], None],
) -> None:  # fmt: skip
    stubborn = manifest("trap 'echo not yet' TERM; echo up; while :; do sleep 0.1; done", image("openmpi"))
    running = start("run", "--engine", "docker", "-f", stubborn)
    running.wait_for("up")
    running.process.send_signal(signal.SIGINT)
    running.wait_for("not yet")
    running.process.send_signal(signal.SIGINT)
    assert running.end() == 130
    assert re.search("press Ctrl-C once more", "".join(running.err))
    nothing_left()
