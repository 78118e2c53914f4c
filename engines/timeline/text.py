"""The timeline as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.engines.timeline.events import in_order

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mpiboot.engines.timeline.events import Event


def lines(events: Iterable[Event]) -> str:
    """A line for each event, in the order of time, with the time since the one before."""
    ordered = in_order(events)
    if not ordered:
        return "no events\n"
    width = max(len(event.process) for event in ordered)
    found, before = [], 0.0
    for event in ordered:
        at = event.at_seconds
        found.append(f"{at:9.3f} s  {f'+{max(0.0, at - before):.3f}':>8}  {event.process:<{width}}  {event.name}\n")
        before = at
    return "".join(found)
