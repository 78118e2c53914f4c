"""The faults of a training job's workers, and what is measured of each: the same on Docker and on the node."""

# Several faults share a job, which saves its start. In each job a worker fails at most once, because horovodrun pauses
# a host longer after each failure. A case returns seconds by the name of their row.
from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bench._elastic import SILENT
from bench.harness import Row

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench._elastic import Training

KILLED, CUT = "killed in training: training goes on", "cut from the network: training goes on"
GOALS = {KILLED: 5.0, CUT: 15.0, "killed in training: its successor takes part": 5.0,
         "1 -> 2 workers: the second takes part again": 5.0}  # fmt: skip
WATCHED = 10.0  # seconds: a launcher looks at its workers every 3 s


class Samples:
    """Seconds by row, in the order in which the rows were first measured."""

    def __init__(self) -> None:
        self._found: dict[str, list[float]] = {}

    def add(self, found: dict[str, float], prefix: str = "") -> None:
        for what, seconds in found.items():
            self._found.setdefault(prefix + what, []).append(seconds)

    def rows(self) -> list[Row]:
        return [Row(what, "s", samples, limit=next((goal for end, goal in GOALS.items() if what.endswith(end)), None))
                for what, samples in self._found.items()]


def sizes(job: Training) -> dict[str, float]:
    """From two ranks: 2 -> 3 -> 1 -> 2."""
    began = time.time()
    job.scale(3)
    grown = job.until(3, began, steps=10)
    stood_still = job.longest_gap(began)
    again = time.time()
    job.scale(1)
    shrunk = job.until(1, again, steps=5)
    once_more = time.time()
    job.scale(2)
    return {"2 -> 3 workers: the third takes part": grown - began,
            "2 -> 3 workers: training stood still": stood_still,
            "3 -> 1 workers: training goes on": shrunk - again,
            "1 -> 2 workers: the second takes part again": job.until(2, once_more, steps=5) - once_more}  # fmt: skip


def losses(job: Training, removed: str) -> dict[str, float]:
    """From two ranks: a third is killed while it joins. Once there are three, one is killed and another removed."""
    job.scale(3)
    job.wait("a rank that joins", lambda: job.has_rank(2))
    joining = time.time()
    job.kill(2)
    successor = job.until(3, joining, steps=5)
    stood_still = job.longest_gap(joining)
    killed, goes_on = _lost(job, KILLED, lambda: job.kill(1), 2)
    back = job.until(3, goes_on, steps=5)
    more, _ = _lost(job, f"{removed}: training goes on", lambda: job.remove(0), 2)
    return {"killed while joining: training stood still": stood_still,
            "killed while joining: its successor takes part": successor - joining,
            **killed, "killed in training: its successor takes part": back - goes_on + killed[KILLED],
            **more}  # fmt: skip


def network(job: Training) -> dict[str, float]:
    """From three ranks: a fourth worker never answers; then one is cut off and connected again."""
    silent = watched(job, SILENT + 1)
    found, _ = _lost(job, CUT, lambda: job.cut(1), 2)
    again = time.time()
    job.connect(1)
    return {"a name that never answers: training stood still": silent, **found,
            "connected again: takes part": job.until(3, again, steps=5) - again}  # fmt: skip


def cut_while_joining(job: Training) -> dict[str, float]:
    """From two ranks: a third is cut off once its program runs, and is not connected again."""
    job.scale(3)
    job.wait("a rank that joins", lambda: job.has_rank(2))
    began = time.time()
    job.cut(2)
    job.until(2, began, steps=20)
    return {"cut off while joining: training stood still": job.longest_gap(began)}


def briefly(job: Training) -> dict[str, float]:
    """From three ranks: one is killed, and another is cut off once the first is replaced."""
    killed, _ = _lost(job, KILLED, lambda: job.kill(1), 2)
    job.until(3, time.time(), steps=5)
    cut, _ = _lost(job, CUT, lambda: job.cut(2), 2)
    return {**killed, **cut}


def watched(job: Training, workers: int) -> float:
    """The longest time without a step after a request that must not disturb the training."""
    began = time.time()
    job.scale(workers)
    time.sleep(WATCHED)
    size = max(step.size for step in list(job.steps) if step.at > began)
    if size >= workers:
        raise RuntimeError(f"{job.name}: {size} ranks, though worker-{workers - 1} cannot have one")
    return job.longest_gap(began)


def _lost(job: Training, what: str, lose: Callable[[], None], left: int) -> tuple[dict[str, float], float]:
    """Seconds until the other ranks have made a step, and the time of that step."""
    began = time.time()
    lose()
    goes_on = job.until(left, began, steps=5)
    return {what: goes_on - began}, goes_on
