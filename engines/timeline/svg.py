"""The timeline as a picture: a bar for each process, coloured by what it did, with a mark for each event.

Pure: the same events give the same bytes. It is legible on light and dark pages, and to users of screen readers.
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from mpiboot.engines.timeline.events import Event, Lane, in_order, lanes
from mpiboot.engines.timeline.scale import Scale, scale_for
from mpiboot.engines.timeline.style import COLOURS, style

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

WIDTH, LEFT, RIGHT = 960, 168, 44  # pixels; LEFT holds the names
TOP, LANE, BOTTOM = 92, 44, 62
SMALL = 5.9  # pixels a character takes in the small text, on the safe side
LONGEST_NAME = 22  # characters that fit in LEFT

_ILLEGAL = re.compile("[^\t\n -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

# What a process does after an event. An unknown event changes nothing and only has its mark.
PHASES = {
    "created": "setting-up",
    "started": "coming-up",
    "addresses": "coming-up",
    "checked in": "ready",
    "ready": "ready",
    "exec": "running",
    "first rank": "running",
    "exit": "over",
    "done": "over",
    "deleted": "over",
}
# Where labels of one lane would overlap, only the first one of this order is written; all appear on hovering.
IMPORTANT = ("first rank", "exec", "done", "exit", "ready", "checked in", "started", "addresses", "created")


def draw(unordered: Iterable[Event], title: str = "Timeline of an MPI job") -> str:
    """The whole picture."""
    events = in_order(unordered)
    rows = lanes(events)
    bottom = TOP + LANE * max(1, len(rows))
    height = bottom + BOTTOM
    scale = scale_for(events, LEFT, WIDTH - LEFT - RIGHT)
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title desc">',
        f'<title id="title">{_escaped(title)}</title>',
        f'<desc id="desc">{_escaped(_description(events))}</desc>',
        style(),
        f'<rect class="page" width="{WIDTH}" height="{height}" rx="8"/>',
        f'<text class="title" x="24" y="36">{_escaped(title)}</text>',
        f'<text class="dim" x="24" y="57">{_escaped(_summary(events))}</text>',
        *_axis(scale, bottom),
        *_first_rank(events, scale, bottom),
        *(part for i, lane in enumerate(rows) for part in _lane(lane, TOP + LANE * i, scale, events)),
        *_fold(scale, len(rows)),
        *_legend(height - 26),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _axis(scale: Scale, bottom: float) -> Iterator[str]:
    for at, label in scale.ticks():
        x = _number(at)
        yield f'<line class="grid" x1="{x}" y1="{TOP - 6}" x2="{x}" y2="{bottom}"/>'
        yield f'<text class="small dim" x="{x}" y="{TOP - 12}" text-anchor="middle">{label}</text>'


def _lane(lane: Lane, top: float, scale: Scale, all_events: Sequence[Event]) -> Iterator[str]:
    middle = top + 27
    yield f"<g><title>{_escaped(_description(lane.events))}</title>"
    name = _escaped(_short(lane.process))
    yield f'<text class="name" x="{LEFT - 16}" y="{middle + 4}" text-anchor="end">{name}</text>'
    for phase, begin, finish in phases(lane, _end(all_events), _all_ready(all_events)):
        x, thick = scale.x(begin), 4 if phase == "whole" else 12
        width = max(scale.x(finish) - x, 1.0)
        shape = f'x="{_number(x)}" y="{middle - thick // 2}" width="{_number(width)}" height="{thick}" rx="2"'
        yield f'<rect class="{phase}" {shape}/>'
    for event in lane.events:
        x = scale.x(event.at_seconds)
        title = f"<title>{_escaped(_label(event))}</title>"
        yield f'<circle class="mark" cx="{_number(x)}" cy="{middle}" r="4">{title}</circle>'
    for event, x in labels(lane, scale):
        yield f'<text class="small label" x="{_number(x)}" y="{middle - 12}">{_escaped(_label(event))}</text>'
    yield "</g>"


def phases(lane: Lane, end: float, all_ready: float | None = None) -> list[tuple[str, float, float]]:
    """The phases of a lane: name, begin, end. The last one is drawn until `end`; the job itself has one phase.

    A worker that did not check in has no event of its own for this: it was ready when the launcher found all ready.
    """
    if lane.process == "job":
        return [("whole", lane.events[0].at_seconds, end)]
    found: list[tuple[str, float, float]] = []
    phase, since = "", 0.0
    for event in _completed(lane, all_ready):
        following = PHASES.get(event.name, phase)
        if following != phase:
            found.append((phase, since, event.at_seconds))
            phase, since = following, event.at_seconds
    found.append((phase, since, end))
    return [part for part in found if part[0] in COLOURS]


def _completed(lane: Lane, all_ready: float | None) -> Sequence[Event]:
    if all_ready is None or "worker" not in lane.process:
        return lane.events
    before = [PHASES.get(event.name) for event in lane.events if event.at_seconds <= all_ready]
    if "ready" in before or before[-1:] == ["over"]:
        return lane.events
    return in_order([*lane.events, Event("ready", lane.process, all_ready)])


def _all_ready(events: Sequence[Event]) -> float | None:
    return next((event.at_seconds for event in events if (event.process, event.name) == ("launcher", "ready")), None)


def labels(lane: Lane, scale: Scale) -> list[tuple[Event, float]]:
    """The events whose labels find room above the lane, and where; the important ones first."""
    placed: list[tuple[Event, float, float]] = []
    for event in sorted(lane.events, key=_importance):
        width = SMALL * len(_label(event))
        x = min(scale.x(event.at_seconds) - 4, WIDTH - 8 - width)
        if all(x + width + 8 <= left or right + 8 <= x for _, left, right in placed):
            placed.append((event, x, x + width))
    return sorted(((event, x) for event, x, _ in placed), key=lambda each: each[1])


def _importance(event: Event) -> int:
    return IMPORTANT.index(event.name) if event.name in IMPORTANT else len(IMPORTANT)


def _first_rank(events: Sequence[Event], scale: Scale, bottom: float) -> Iterator[str]:
    """The moment that all others lead to: a line through all lanes."""
    first = next((event for event in events if event.name == "first rank"), None)
    if first:
        x = _number(scale.x(first.at_seconds))
        yield f'<line class="moment" x1="{x}" y1="{TOP - 6}" x2="{x}" y2="{bottom}"/>'


def _fold(scale: Scale, rows: int) -> Iterator[str]:
    """Two slanted strokes across each bar: here time is left out."""
    if scale.fold is None:
        return
    for row in range(rows):
        middle, x = TOP + LANE * row + 27, scale.fold
        for side in (-3.5, 3.5):
            ends = f'x1="{_number(x + side - 4)}" y1="{middle + 10}" x2="{_number(x + side + 4)}" y2="{middle - 10}"'
            yield f'<line class="fold" {ends}/>'


def _legend(y: float) -> Iterator[str]:
    x = float(LEFT)
    for phase, colour in COLOURS.items():
        if colour.meaning:
            yield f'<rect class="{phase}" x="{_number(x)}" y="{y - 9}" width="14" height="10" rx="2"/>'
            yield f'<text class="small dim" x="{_number(x + 20)}" y="{y}">{colour.meaning}</text>'
            x += 44 + SMALL * len(colour.meaning)
    yield f'<line class="moment" x1="{_number(x + 7)}" y1="{y - 11}" x2="{_number(x + 7)}" y2="{y + 3}"/>'
    yield f'<text class="small dim" x="{_number(x + 20)}" y="{y}">first rank</text>'


def _summary(events: Sequence[Event]) -> str:
    first = next((event for event in events if event.name == "first rank"), None)
    if not events:
        return "nothing happened"
    over = f"over after {_end(events):.3f} s"
    return f"first rank after {first.at_seconds:.3f} s, {over}" if first else over


def _description(events: Sequence[Event]) -> str:
    """All events as a sentence, for screen readers; of very many, the first and the last."""
    words = [f"{event.process} {_label(event)}" for event in events]
    if len(words) > 60:
        words = [*words[:40], f"{len(words) - 60} more", *words[-20:]]
    return "; ".join(words) or "nothing happened"


def _label(event: Event) -> str:
    digits = 3 if event.at_seconds < 100 else 1
    return f"{event.name} {event.at_seconds:.{digits}f} s"


def _end(events: Sequence[Event]) -> float:
    return max((event.at_seconds for event in events), default=0.0)


def _short(name: str) -> str:
    """Both ends of a long name: its number is at the end."""
    return name if len(name) <= LONGEST_NAME else f"{name[:12]}…{name[-(LONGEST_NAME - 13) :]}"


def _number(value: float) -> str:
    return f"{value:.1f}"


def _escaped(value: str) -> str:
    """As XML text; a character that XML cannot hold at all becomes a question mark."""
    return escape(_ILLEGAL.sub("?", value))
