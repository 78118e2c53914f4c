"""Elastic Horovod on Docker: how soon training goes on after workers came, went, died or were cut from the network."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from bench._elastic import Training, training
from bench._engine import engine
from bench.docker_run import versions  # noqa: F401 (what the runner asks for)
from bench.harness import Row

if TYPE_CHECKING:
    from collections.abc import Callable

IMAGE = os.environ.get("BENCH_HOROVOD", "mpiboot/horovod-torch:latest")
TIMES = int(os.environ.get("BENCH_TIMES", "3"))
KILLED, CUT = 5.0, 15.0  # goals, seconds


def measure() -> list[Row]:
    """Each sample is a job of its own: after a failure horovodrun pauses a host ever longer."""
    _check()
    found: dict[str, list[float]] = {}
    goals = {
        "killed in training (3 ranks): training goes on": KILLED,
        "cut from the network (3 ranks): training goes on": CUT,
    }
    for number in range(TIMES):
        for case in (_grow_and_shrink, _killed, _killed_while_joining, _cut):
            with training(IMAGE, 2 if case in (_grow_and_shrink, _killed_while_joining) else 3, number) as job:
                for what, seconds in case(job).items():
                    found.setdefault(what, []).append(seconds)
    return [Row(what, "s", samples, limit=goals.get(what)) for what, samples in found.items()]


def _grow_and_shrink(job: Training) -> dict[str, float]:
    began = time.time()
    job.scale(3)
    grown = job.until(3, began, steps=10)
    stood_still = job.longest_gap(began)
    again = time.time()
    job.scale(1)
    shrunk = job.until(1, again, steps=5)
    return {"2 -> 3 workers: the third takes part": grown - began,
            "2 -> 3 workers: training stood still": stood_still,
            "3 -> 1 workers: training goes on": shrunk - again}  # fmt: skip


def _killed(job: Training) -> dict[str, float]:
    began = job.kill(1)
    goes_on = job.until(2, began)
    back = job.until(3, goes_on, steps=5)
    return {"killed in training (3 ranks): training goes on": goes_on - began,
            "killed in training: its successor takes part": back - began}  # fmt: skip


def _killed_while_joining(job: Training) -> dict[str, float]:
    job.scale(3)
    _wait(lambda: job.has_rank(2))
    began = job.kill(2)
    job.until(3, began, steps=5)
    return {"killed while joining: training stood still": job.longest_gap(began),
            "killed while joining: its successor takes part": job.until(3, began) - began}  # fmt: skip


def _cut(job: Training) -> dict[str, float]:
    began = job.link(1, "down")
    goes_on = job.until(2, began, steps=20)
    again = job.link(1, "up")
    back = job.until(3, again, steps=5)
    return {"cut from the network (3 ranks): training goes on": goes_on - began,
            "connected again: takes part": back - again}  # fmt: skip


def _check() -> None:
    with engine(IMAGE):
        pass


def _wait(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError("no rank was started on the new worker")
        time.sleep(0.05)
