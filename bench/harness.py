"""What every row of the benchmark uses: samples, their spread, and samples taken in turn."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Unavailable(Exception):  # noqa: N818  # it is no error: the machine lacks something, its text says what
    """A row cannot be measured here."""


@dataclass(frozen=True)
class Row:
    """One thing measured. The median counts; `limit` is the goal (README.md says how it is meant)."""

    what: str
    unit: str
    samples: Sequence[float]
    limit: float | None = None
    beside: Sequence[float] = ()
    beside_what: str = ""
    note: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def ratio(self) -> float | None:
        """Ours in multiples of what was measured beside it."""
        return self.median / statistics.median(self.beside) if self.beside else None

    @property
    def met(self) -> bool | None:
        if self.limit is None:
            return None
        return (self.median if self.ratio is None else self.ratio) <= self.limit


def in_turn(times: int, *ways: Callable[[], float]) -> list[list[float]]:
    """So many samples of each way, one after the other in each round, so that a noisy minute hits all alike."""
    samples: list[list[float]] = [[] for _ in ways]
    for _ in range(times):
        for way, into in zip(ways, samples, strict=True):
            into.append(way())
    return samples
