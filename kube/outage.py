"""Whether the API server is away. One probe finds out when it is back, and wakes all that wait for it."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)

PROBE_EVERY = 1.0  # seconds


class Outage:
    """A request that gets no answer calls `suspect`; then the probe asks until the API server answers.

    Without a probe (`run`), as in the command line, nothing is ever away.
    """

    def __init__(self) -> None:
        self.away = False  # the probe failed: this is an outage and not a single request that failed
        self._suspected = asyncio.Event()
        self._back = asyncio.Event()
        self._listeners: list[Callable[[], None]] = []

    def listen(self, back: Callable[[], None]) -> None:
        """Call `back` at each end of an outage."""
        self._listeners.append(back)

    def suspect(self) -> None:
        """A request got no answer, or one that says that the server is broken."""
        self._suspected.set()

    async def sleep(self, seconds: float, least: float = 0.0) -> bool:
        """Sleep, at most until an outage ends, and at least `least` seconds. Whether an outage has ended meanwhile."""
        back = self._back
        try:
            async with asyncio.timeout(seconds):
                await asyncio.sleep(least)
                await back.wait()
        except TimeoutError:
            return False
        return True

    async def over(self) -> None:
        """Return when the API server is not away."""
        while self.away:
            await self._back.wait()

    async def run(self, ready: Callable[[], Awaitable[bool]]) -> None:
        """Probe with `ready` while an outage is suspected, until cancelled."""
        while True:
            await self._suspected.wait()
            self._suspected.clear()
            while not await ready():
                if not self.away:
                    self.away = True
                    log.warning("the API server is away")
                await asyncio.sleep(PROBE_EVERY)
            if self.away:
                self.away = False
                log.warning("the API server is back")
                back, self._back = self._back, asyncio.Event()
                back.set()
                for each in self._listeners:
                    each()
            await asyncio.sleep(PROBE_EVERY)
