"""Work by key: one key in order, several keys in parallel, with a back-off for each key."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from typing import TYPE_CHECKING

from mpiboot.controller.logs import JOB
from mpiboot.kube.api_error import ApiError, NotLeadingError, TroubleError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)

FIRST_BACK_OFF = 0.05  # seconds; doubles with each failure in a row
LONGEST_BACK_OFF = 60.0
# A large job changes all the time while it starts, and each look takes long: one job may take this share of time.
SHARE = 0.25
LONGEST_REST = 0.3


class Queue:
    """Calls `handle(key)` for each added key, never twice at the same time for one key. The queue handles a key once
    more that is added meanwhile.

    `handle` returns seconds until the queue handles the key again by itself, or None. If it raises, the queue handles
    the key again after its back-off.
    """

    def __init__(self, handle: Callable[[str], Awaitable[float | None]], workers: int) -> None:
        self._handle = handle
        self._workers = workers
        self._ready: asyncio.Queue[str] = asyncio.Queue()
        self._waiting: set[str] = set()  # in _ready
        self._running: set[str] = set()
        self._again: set[str] = set()  # added while running
        self._later: dict[str, asyncio.TimerHandle] = {}
        self._failures: dict[str, int] = {}
        self._asked: dict[str, float] = {}  # seconds that the server asks us to wait
        self._rests: dict[str, asyncio.TimerHandle] = {}  # until when the queue does not handle a key

    def __len__(self) -> int:
        """How many keys wait or run."""
        return len(self._waiting) + len(self._running)

    def add(self, key: str, after: float = 0.0) -> None:
        """Handle the key now or after some seconds. Of several delays the shortest counts."""
        if rest := self._rests.get(key):
            after = max(after, rest.when() - asyncio.get_running_loop().time())
        if after > 0:
            self._add_later(key, after)
            return
        if timer := self._later.pop(key, None):
            timer.cancel()
        if key in self._running:
            self._again.add(key)
        elif key not in self._waiting:
            self._waiting.add(key)
            self._ready.put_nowait(key)

    def forget(self, key: str) -> None:
        """Drop the back-off and the timer of a deleted object: the next one of that name starts without them."""
        self._failures.pop(key, None)
        if timer := self._later.pop(key, None):
            timer.cancel()

    def wake(self) -> None:
        """Handle every key now that waits after a failure: an outage of the API server is over."""
        for key in tuple(self._failures):
            self._failures[key] = 0
            if key in self._later:
                self.add(key)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(), name=f"worker {number}")

    def _add_later(self, key: str, after: float) -> None:
        if key in self._running:
            self._again.add(key)
            return
        loop = asyncio.get_running_loop()
        known = self._later.get(key)
        if known and known.when() <= loop.time() + after:
            return
        if known:
            known.cancel()
        self._later[key] = loop.call_later(after, self._due, key)

    def _due(self, key: str) -> None:
        del self._later[key]
        self.add(key)

    def _rest(self, key: str, seconds: float) -> None:
        # On a busy loop a rest may be over before its timer runs, and that timer must not end the next rest.
        if earlier := self._rests.get(key):
            earlier.cancel()
        self._rests[key] = asyncio.get_running_loop().call_later(seconds, self._rests.pop, key)

    async def _work(self) -> None:
        while True:
            key = await self._ready.get()
            self._waiting.discard(key)
            self._running.add(key)
            busy = time.thread_time()
            try:
                after = await self._once(key)
            finally:
                self._running.discard(key)
            rest = min((time.thread_time() - busy) * (1 / SHARE - 1), LONGEST_REST)
            self._rest(key, max(rest, self._asked.pop(key, 0.0)))
            if key in self._again:
                self._again.discard(key)
                after = 0.0
            if after is not None:
                self.add(key, after)

    async def _once(self, key: str) -> float | None:
        started = time.monotonic()
        JOB.set(key)
        try:
            after = await self._handle(key)
        except ApiError as error:
            # After a conflict another client wrote in between; the watch brings the change.
            return self._back_off(key, None if error.conflict else error)
        except NotLeadingError:
            return self._back_off(key, None)  # the lease is renewed by then, or the next leader works
        except (UnreachableError, TroubleError, TimeoutError) as error:
            return self._back_off(key, error)
        except Exception:
            # One bad job must not end the work on all others.
            log.exception("failed")
            return self._back_off(key, None)
        self._failures.pop(key, None)
        log.debug("looked at in %.3f s", time.monotonic() - started)
        return after

    def _back_off(self, key: str, error: Exception | None) -> float:
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay: float = min(FIRST_BACK_OFF * 2 ** min(failures, 20), LONGEST_BACK_OFF)
        delay *= random.uniform(0.75, 1.25)  # noqa: S311 (spreads load)
        if wanted := getattr(error, "retry_after", None):
            self._asked[key] = delay = max(delay, wanted)
        if error:
            log.warning("%s; next try in %.1f s", error, delay)
        return delay
