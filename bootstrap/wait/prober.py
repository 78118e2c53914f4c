"""Reads SSH banners from many hosts at once, in the selector of the loop."""

from __future__ import annotations

import resource
import selectors
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.bootstrap.wait import worker_table
from mpiboot.ssh.banner import Banner
from mpiboot.ssh.client import DEFAULT_PORT

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.bootstrap.hosts import Endpoint
    from mpiboot.ssh.failure import Failure

    Report = Callable[[str, Endpoint, Failure | None, float], None]

_FOR_OTHERS = 64  # descriptors


class Attempt(NamedTuple):
    """One connection to one host, and its time limit in seconds."""

    name: str
    endpoint: Endpoint
    banner: Banner
    within: float


class Prober:
    """Calls `report` once for each probe, with the endpoint that was probed."""

    def __init__(self, selector: selectors.BaseSelector, report: Report) -> None:
        self._selector, self._report = selector, report
        self._open: dict[int, Attempt] = {}
        self._ends: list[tuple[float, int, Attempt]] = []  # when, a serial number against ties, what
        self._serial = count()
        self._most = max(8, descriptors() - _FOR_OTHERS)

    @property
    def room(self) -> int:
        """How many more probes can start now."""
        return self._most - len(self._open)

    def start(self, name: str, endpoint: Endpoint, attempts: int, now: float) -> None:
        try:
            banner = Banner(endpoint.address, endpoint.port or DEFAULT_PORT)
        except OSError as error:
            from mpiboot.ssh.failure import of_errno

            self._report(name, endpoint, of_errno(error.errno or 0, str(error)), now)
            return
        attempt = Attempt(name, endpoint, banner, worker_table.connect_within(attempts))
        self._open[banner.fileno()] = attempt
        if banner.failed_at_once:
            self._advance(attempt, now)
            return
        self._selector.register(banner, selectors.EVENT_READ, self._advance_later(attempt))
        self._ends_at(now + attempt.within, attempt)

    def next_end(self) -> float:
        return self._ends[0][0] if self._ends else float("inf")

    def end_overdue(self, now: float) -> None:
        """End the probes that took too long. A connected one gets more time: sshd may be busy."""
        while self._ends and self._ends[0][0] <= now:
            attempt = heappop(self._ends)[2]
            number = attempt.banner.fileno()
            if self._open.get(number) is not attempt:
                continue
            spent = attempt.within
            if spent < worker_table.BANNER_WITHIN and attempt.banner.connected:
                longer = attempt._replace(within=worker_table.BANNER_WITHIN)
                self._open[number] = longer
                self._selector.modify(longer.banner, selectors.EVENT_READ, self._advance_later(longer))
                self._ends_at(now + worker_table.BANNER_WITHIN - spent, longer)
                continue
            self._finish(attempt, attempt.banner.timed_out(spent), now)

    def close(self) -> None:
        for attempt in list(self._open.values()):
            self._forget(attempt)

    def _ends_at(self, when: float, attempt: Attempt) -> None:
        heappush(self._ends, (when, next(self._serial), attempt))

    def _advance_later(self, attempt: Attempt) -> Callable[[float], None]:
        return lambda now: self._advance(attempt, now)

    def _advance(self, attempt: Attempt, now: float) -> None:
        outcome = attempt.banner.advance()
        if outcome is not False:
            self._finish(attempt, None if outcome is True else outcome, now)

    def _finish(self, attempt: Attempt, outcome: Failure | None, now: float) -> None:
        self._forget(attempt)
        self._report(attempt.name, attempt.endpoint, outcome, now)

    def _forget(self, attempt: Attempt) -> None:
        del self._open[attempt.banner.fileno()]
        if not attempt.banner.failed_at_once:
            self._selector.unregister(attempt.banner)
        attempt.banner.close()


def descriptors() -> int:
    """The limit of open files of this process."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 1 << 20 if soft == resource.RLIM_INFINITY else soft
