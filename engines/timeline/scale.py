"""Seconds to pixels. Users look at the start of a job, so a long run after it is folded away."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpiboot.engines.timeline.events import Event

ENDINGS = frozenset({"exit", "done", "deleted"})
FOLD_BEYOND = 2.5  # times the start's length: a job that runs longer than this is folded
START_PART = 0.82  # of the width, where the rest is folded
GAP = 0.05


class Scale(NamedTuple):
    """A linear axis of `seconds`; if folded, the seconds from `tail` to `end` share what is left of the width."""

    left: float
    width: float
    seconds: float
    step: float
    tail: float | None = None
    end: float = 0.0

    def x(self, at: float) -> float:
        at = max(at, 0.0)
        if self.tail is None:
            return self.left + self.width * min(at / self.seconds, 1.0)
        if at <= self.seconds:
            return self.left + self.width * START_PART * at / self.seconds
        if at < self.tail:  # nothing happens there but the run itself
            return self.left + self.width * (START_PART + GAP / 2)
        part = (at - self.tail) / max(self.end - self.tail, 1e-9)
        return self.left + self.width * (START_PART + GAP + (1 - START_PART - GAP) * min(part, 1.0))

    @property
    def fold(self) -> float | None:
        """Where the axis is folded, in pixels."""
        return None if self.tail is None else self.left + self.width * (START_PART + GAP / 2)

    def ticks(self) -> list[tuple[float, str]]:
        """Where the axis is marked, and with what."""
        digits = max(0, -math.floor(math.log10(self.step) + 1e-9))
        marks = [i * self.step for i in range(round(self.seconds / self.step) + 1)]
        found = [(self.x(at), f"{at:.{digits}f} s") for at in marks]
        return found if self.tail is None else [*found, (self.left + self.width, f"{self.end:.{digits}f} s")]


def scale_for(events: Sequence[Event], left: float, width: float) -> Scale:
    """The axis that shows all these events; 4 to 10 steps of 1, 2 or 5 times a power of ten."""
    last = max((event.at_seconds for event in events), default=1.0)
    start = max((event.at_seconds for event in events if event.name not in ENDINGS), default=last)
    if start > 0 and last > FOLD_BEYOND * start:
        tail = min(event.at_seconds for event in events if event.name in ENDINGS and event.at_seconds > start)
        seconds, step = _round_up(1.2 * start)
        if tail > seconds:
            # The end gets a little of the run before it, so that its marks do not sit in the fold.
            return Scale(left, width, seconds, step, tail - max(0.2 * (last - tail), 0.02 * last, 0.0), last)
    return Scale(left, width, *_round_up(last))


def _round_up(seconds: float) -> tuple[float, float]:
    """The end of an axis at or after this, and its step."""
    seconds = max(seconds, 1e-3)
    power = 10.0 ** math.floor(math.log10(seconds / 4))
    step = next(factor * power for factor in (1, 2, 5, 10) if seconds / (factor * power) <= 10)
    return step * math.ceil(seconds / step - 1e-9), step
