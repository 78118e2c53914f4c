"""Horovod's elastic driver with ranks that are functions: who is started, where, and how it ends. Runs in an image.

`joining.py RANKS SPOILED [once]`: with so many hosts; the program of the spoiled rank (or "all", "none") ends before
Horovod has begun in it, `once`: only when it is started first.
"""

# What it imports is in the images only.
# mypy: ignore-errors
# ruff: noqa: T201

from __future__ import annotations

import sys
import time
from typing import Any

from horovod.runner.elastic.discovery import FixedHosts
from horovod.runner.elastic.driver import ElasticDriver


class Rendezvous:
    """Without its server."""

    def init(self, plan: list[Any]) -> None:
        """No test calls it."""

    def stop(self) -> None:
        """It was not started."""


def main(ranks: int, spoiled: str, *more: str) -> None:
    hosts = FixedHosts({f"host{index}": 1 for index in range(ranks)})
    driver = ElasticDriver(Rendezvous(), hosts, 1, ranks, timeout=60)
    starts: list[str] = []

    def rank(slot: Any, _: list[Any]) -> tuple[int, float]:  # noqa: ANN401 (Horovod's)
        starts.append(f"{slot.rank}{'' if getattr(slot, 'runs_on', slot.hostname) == slot.hostname else '-elsewhere'}")
        if spoiled == "all" or (spoiled == str(slot.rank) and not ("once" in more and starts.count(starts[-1]) > 1)):
            return 2, time.time()
        time.sleep(0.5)  # its imports: one that fails has failed before
        driver.has_come("global_0", str(slot.rank))
        while any(driver.is_joining("global_0", str(other)) for other in range(ranks)):
            time.sleep(0.05)
        # An address that never came is an error; nothing else ends a rank that has begun.
        return (0 if spoiled == "none" or "once" in more else 1), time.time()

    driver.wait_for_available_slots(ranks)
    driver.start(ranks, rank)
    codes = {code for code, _ in driver.get_results().worker_results.values()}
    print(*sorted(starts), "->", *sorted(codes))


main(int(sys.argv[1]), *sys.argv[2:])
