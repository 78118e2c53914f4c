"""`mpiboot run --restarts N`: ranks and workers die, and the job goes on."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

import pytest

from mpiboot.bootstrap.process import reaper

if TYPE_CHECKING:
    from collections.abc import Callable

    import docker

    from tests.engines.conftest import Running

JOB = ("-n", "2", "--workers", "2", "--restarts", "3")
# The ranks of the first two attempts wait for what the test does to them.
PROGRAM = ["sh", "-c", 'echo "attempt $MPIBOOT_ATTEMPT on $MPIBOOT_INDEX"; [ $MPIBOOT_ATTEMPT = 3 ] || exec sleep 600']


@pytest.fixture
def local(program: Callable[[str], str], no_traces: Callable[[], None]) -> Callable[[], None]:
    for name in ("sshd", "ssh"):
        program(name)
    if not which("mpirun", path=str(Path(sys.executable).parent)):
        program("mpirun")
    return no_traces


def below(running: Running, index: int, words: bytes) -> int:
    """The process of the job that has these words in its command line, on the worker of this number."""
    for pid in reaper.descendants(running.process.pid):
        try:
            argv, environ = (Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ"))
        except OSError:
            continue
        if words in argv and f"MPIBOOT_INDEX={index}\0".encode() in environ and b".guard\0" not in argv:
            return pid
    raise AssertionError(f"no {words!r} on worker {index}")


def test_a_rank_and_then_a_worker_of_this_machine_are_killed(
    start: Callable[..., Running], local: Callable[[], None]
) -> None:
    job = start("run", "--engine", "local", *JOB, "--", *PROGRAM)
    for index in (0, 1):
        job.wait_for(f"attempt 1 on {index}")
    reaper.send(below(job, 0, b"sleep\x00600"), signal.SIGKILL)
    for index in (0, 1):
        job.wait_for(f"attempt 2 on {index}")
    reaper.send(below(job, 1, b"\0worker\0"), signal.SIGKILL)
    job.wait_for("worker-1 ended with exit code 137")
    assert job.end(120) == 0, job.err
    assert sorted(line for line in job.out if "attempt 3" in line) == ["attempt 3 on 0\n", "attempt 3 on 1\n"]
    assert any("attempt 3 of 4 succeeded" in line for line in job.err)
    local()


@pytest.mark.parametrize("runtime", ["openmpi", "mpich", "intel"])
def test_a_rank_and_then_a_worker_in_containers_are_killed(
    start: Callable[..., Running], image: Callable[[str], str], docker_engine: docker.DockerClient, name: str,
    nothing_left: Callable[[], None], runtime: str,
) -> None:  # fmt: skip
    job = start("run", "--engine", "docker", "--name", name, *JOB, image(runtime), "--", *PROGRAM)
    for index in (0, 1):
        job.wait_for(f"attempt 1 on {index}")
    # The first rank's `sleep`; the image has no pkill.
    kill = r"""for p in /proc/[0-9]*; do
        [ "$(tr '\0' ' ' <$p/cmdline)" = 'sleep 600 ' ] && kill -9 ${p#/proc/}; done; true"""
    assert docker_engine.containers.get(f"{name}-worker-0").exec_run(["sh", "-c", kill]).exit_code == 0
    for index in (0, 1):
        job.wait_for(f"attempt 2 on {index}")
    docker_engine.containers.get(f"{name}-worker-1").kill()
    job.wait_for("worker-1 ended with exit code 137")
    assert job.end(120) == 0, job.err
    assert sorted(line for line in job.out if "attempt 3" in line) == ["attempt 3 on 0\n", "attempt 3 on 1\n"]
    nothing_left()


@pytest.mark.parametrize("value", ["0", "300", "x"])
def test_final_codes_are_checked(mpiboot: Callable[..., object], value: str) -> None:
    done = mpiboot("run", "--engine", "local", "--final-codes", value, "--", "true")
    assert done.returncode == 2  # type: ignore[attr-defined]
    assert "--final-codes must be exit codes from 1 to 255" in done.stderr  # type: ignore[attr-defined]
