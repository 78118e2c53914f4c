"""One way to wait: ask until it is so, until the deadline."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from .errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Callable


def wait_for(what: str, asked: Callable[[], bool], limit: float, *,
             meanwhile: Callable[[], None] = lambda: None) -> None:
    """Return once `asked` says yes. `meanwhile` may raise when waiting has become pointless."""
    deadline = time.monotonic() + limit
    while not asked():
        meanwhile()
        if time.monotonic() > deadline:
            raise ClusterError(f"{what}: not within {limit:.0f} s")
        time.sleep(0.05)  # the pace of asking, not a guess of how long it takes
