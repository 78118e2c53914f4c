"""The one way to wait: try until a condition is true or the time is over."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from .errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Callable


def wait_for(what: str, condition: Callable[[], bool], limit: float, *,
             meanwhile: Callable[[], None] = lambda: None) -> None:
    """Return once `condition` is true. `meanwhile` may raise when waiting has become pointless."""
    deadline = time.monotonic() + limit
    while not condition():
        meanwhile()
        if time.monotonic() > deadline:
            raise ClusterError(f"{what}: not within {limit:.0f} s")
        time.sleep(0.05)  # the pause between two tries, not a guess of how long it takes
