"""Ranks and workers are killed at random, and the job ends with the result of an undisturbed run.

The whole: `make kills`, which kills for MPIBOOT_KILL_SECONDS.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mpiboot.bootstrap.process import reaper

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.engines.conftest import Running

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "restarts"
SECONDS = float(os.environ.get("MPIBOOT_KILL_SECONDS", "0"))
KILLS = 3  # at least
YIELD = ("-e", "OMPI_MCA_mpi_yield_when_idle=1")  # ranks that wait must leave a busy machine to others
EVERY, PAUSE = 10, 30  # steps from one checkpoint to the next, milliseconds after a step


@pytest.fixture
def heat(program: Callable[[str], str], tmp_path: Path) -> str:
    for name in ("sshd", "ssh"):
        program(name)
    mpicc = Path(sys.executable).with_name("mpicc")
    built = str(tmp_path / "heat")
    compile_it = [str(mpicc) if mpicc.exists() else program("mpicc"), "-O2", "-Wall", "-Werror"]
    subprocess.run([*compile_it, "-o", built, str(EXAMPLES / "heat.c")], check=True)
    return built


def victims(running: Running, heat: str) -> list[int]:
    """The job's ranks, and its workers."""
    found = []
    for pid in reaper.descendants(running.process.pid):
        try:
            argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        worker = b"worker" in argv and not any(b".guard" in word for word in argv)
        if worker or argv[0] == heat.encode():
            found.append(pid)
    return found


def attempts(out: list[str]) -> int:
    return sum("begins after step" in line for line in out)


def test_the_result_is_that_of_an_undisturbed_run(
    start: Callable[..., Running], heat: str, no_traces: Callable[[], None], tmp_path: Path
) -> None:
    # Long enough that the kills come before the end: the pauses alone take so long.
    steps = int((SECONDS or 6) * 1000 / PAUSE)

    def job(file: str, pause: int) -> Running:
        words = (heat, str(tmp_path / file), str(steps), str(EVERY), str(pause))
        options = ("--engine", "local", "-n", "2", "--workers", "2", "--restarts", "1000", *YIELD)
        return start("run", *options, "--", *words)

    undisturbed = job("undisturbed", 0)
    assert undisturbed.end(120) == 0, undisturbed.err
    disturbed, chance, began = job("disturbed", PAUSE), random.Random(1), time.monotonic()
    disturbed.wait_for("attempt 1 begins")
    killed = 0
    while disturbed.process.poll() is None and (killed < KILLS or time.monotonic() - began < SECONDS):
        before = attempts(disturbed.out)
        # Whatever runs at that moment: also before the first step, and while a checkpoint is written.
        wait = time.monotonic() + chance.uniform(0.0, 1.0)
        while time.monotonic() < wait and disturbed.process.poll() is None:
            time.sleep(0.01)
        if alive := victims(disturbed, heat):
            reaper.send(chance.choice(alive), signal.SIGKILL)
            killed += 1
            while attempts(disturbed.out) <= before and disturbed.process.poll() is None:
                assert time.monotonic() - began < SECONDS + 120, disturbed.err
                time.sleep(0.02)
    assert killed >= KILLS, disturbed.err
    assert disturbed.end(600) == 0, disturbed.err
    results = [re.findall(r"result (\S+)", "".join(each.out)) for each in (undisturbed, disturbed)]
    assert results[0] == results[1] != []
    # Each attempt goes on from the last checkpoint, so at most EVERY steps are lost.
    last = "0"
    for line in disturbed.out:
        if saved := re.search(r"checkpoint after step (\d+)", line):
            last = saved[1]
        if begins := re.search(r"begins after step (\d+)", line):
            assert int(begins[1]) - int(last) in (0, EVERY), disturbed.out
    no_traces()
