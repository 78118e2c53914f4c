"""The rows of the benchmark: samples, their spread, and samples that are taken in turn."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Unavailable(Exception):  # noqa: N818  # no error: the machine lacks something, and the text says what
    """A row cannot be measured here."""


@dataclass(frozen=True)
class Row:
    """One measurement. The median counts, and `limit` is the goal; README.md explains the fields."""

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
        """Our median divided by the median of the other side."""
        return self.median / statistics.median(self.beside) if self.beside else None

    @property
    def met(self) -> bool | None:
        if self.limit is None:
            return None
        return (self.median if self.ratio is None else self.ratio) <= self.limit


def in_turn(times: int, *ways: Callable[[], float]) -> list[list[float]]:
    """Take `times` samples of each way, one after the other in each round, so that a noisy minute affects all ways."""
    samples: list[list[float]] = [[] for _ in ways]
    for _ in range(times):
        for way, into in zip(ways, samples, strict=True):
            into.append(way())
    return samples
