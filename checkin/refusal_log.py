"""A log that a thousand bad requests cannot flood: one line for each source and kind of refusal."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from mpiboot.checkin.messages import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

_REMEMBERED = 4096  # sources; beyond that the longest silent one is forgotten and may be logged again


class RefusalLog:
    """Logs each kind of refusal once for each source."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._write = log
        self._seen: OrderedDict[tuple[str, int], None] = OrderedDict()

    def log(self, source: str, status: int, text: str) -> None:
        key = (source, status)
        if key not in self._seen:
            self._write(one_line(f"check-in from {source} refused: {status} {text} (logged once for each source)"))
        self._seen[key] = None
        self._seen.move_to_end(key)
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
