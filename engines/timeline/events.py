"""The events of a job, ordered by time and grouped by process. Pure: the same events give the same result."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_LANES = 20  # a thousand workers make no picture: beyond this number the rest share one lane


@dataclass(frozen=True)
class Event:
    """Something that happened once, to one process of the job, this number of seconds after the job's start."""

    name: str
    process: str  # or `job`
    at_seconds: float


@dataclass(frozen=True)
class Lane:
    """One process of the job and its events in the order of time."""

    process: str
    events: tuple[Event, ...]


def in_order(events: Iterable[Event]) -> list[Event]:
    """By time. Events of the same moment keep their order."""
    return sorted(events, key=lambda event: event.at_seconds)


def lanes(events: Sequence[Event], most: int = MOST_LANES) -> list[Lane]:
    """The job itself, its launcher, its workers by number, then others; if they are too many, the last has the rest.

    Of each event that lane shows the latest, for which the others had to wait.
    """
    processes = sorted({event.process for event in events}, key=_rank)
    each = [Lane(process, tuple(event for event in events if event.process == process)) for process in processes]
    if len(each) <= most:
        return each
    kept, rest = each[: most - 1], each[most - 1 :]
    return [*kept, _shared(rest)]


def _shared(rest: Sequence[Lane]) -> Lane:
    name = f"{len(rest)} more, the latest"
    latest: dict[str, float] = {}
    for lane in rest:
        for event in lane.events:
            latest[event.name] = max(event.at_seconds, latest.get(event.name, event.at_seconds))
    return Lane(name, tuple(in_order(Event(event, name, at) for event, at in latest.items())))


def _rank(process: str) -> tuple[int, str, int, str]:
    """Sorts worker-2 before worker-10."""
    number = re.search(r"[0-9]{1,9}$", process)
    stem = process[: number.start()] if number else process
    first = ("job", "launcher").index(process) if process in ("job", "launcher") else 2 if "worker" in process else 3
    return first, stem, int(number[0]) if number else -1, process
