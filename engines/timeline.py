"""What happened when in a job: events in, a text or a picture out. Pure: the same events give the same bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_LANES = 20  # a thousand workers make no picture: beyond this the rest share one lane


@dataclass(frozen=True)
class Event:
    """Something that happened once, to one part of the job, so many seconds after the job's start."""

    name: str
    who: str
    at_seconds: float


@dataclass(frozen=True)
class Lane:
    """One part of the job and its events in the order of time."""

    who: str
    events: tuple[Event, ...]


def text(events: Iterable[Event]) -> str:
    """A line for each event, in the order of time, with the time since the one before."""
    ordered = in_order(events)
    if not ordered:
        return "no events\n"
    who_width = max(len(event.who) for event in ordered)
    lines, before = [], 0.0
    for event in ordered:
        at = event.at_seconds
        lines.append(f"{at:9.3f} s  {f'+{max(0.0, at - before):.3f}':>8}  {event.who:<{who_width}}  {event.name}\n")
        before = at
    return "".join(lines)


def svg(events: Iterable[Event], title: str = "Timeline of an MPI job") -> str:
    """A picture with a lane for each part of the job; legible on light and dark, and to those who hear it read."""
    from mpiboot.engines.timeline_svg import draw

    return draw(in_order(events), title)


def in_order(events: Iterable[Event]) -> list[Event]:
    """By time; those of the same moment stay as they came."""
    return sorted(events, key=lambda event: event.at_seconds)


def lanes(events: Sequence[Event], most: int = MOST_LANES) -> list[Lane]:
    """The job itself, its launcher, its workers by number, then others. Too many workers: the last lane holds the rest.

    That lane shows of each event the latest: what everybody waited for.
    """
    whos = sorted({event.who for event in events}, key=_rank)
    each = [Lane(who, tuple(event for event in events if event.who == who)) for who in whos]
    if len(each) <= most:
        return each
    kept, rest = each[: most - 1], each[most - 1 :]
    return [*kept, _shared(rest)]


def _shared(rest: Sequence[Lane]) -> Lane:
    who = f"{len(rest)} more, the latest"
    latest: dict[str, float] = {}
    for lane in rest:
        for event in lane.events:
            latest[event.name] = max(event.at_seconds, latest.get(event.name, event.at_seconds))
    return Lane(who, tuple(in_order(Event(name, who, at) for name, at in latest.items())))


def _rank(who: str) -> tuple[int, str, int, str]:
    """Sorts worker-2 before worker-10."""
    number = re.search(r"[0-9]{1,9}$", who)
    stem = who[: number.start()] if number else who
    first = ("job", "launcher").index(who) if who in ("job", "launcher") else 2 if "worker" in who else 3
    return first, stem, int(number[0]) if number else -1, who
