"""Horovod's elastic driver with ranks that are functions: whether a host whose rank failed is used again. In an image.

`pausing.py replaced`: mpiboot has seen its worker start again since. `pausing.py kept`: it has not.
"""

# What it imports is in the images only.
# mypy: ignore-errors
# ruff: noqa: T201

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from horovod.runner.elastic.discovery import FixedHosts
from horovod.runner.elastic.driver import DISCOVER_HOSTS_FREQUENCY_SECS, ElasticDriver

STARTS = Path("/tmp/worker-starts")


class Rendezvous:
    """Without its server."""

    def init(self, plan: list[Any]) -> None:
        """No test calls it."""

    def stop(self) -> None:
        """It was not started."""


def main(case: str) -> None:
    os.environ["MPIBOOT_LIVE_HOSTS"] = str(STARTS.with_name("live-hosts"))
    # The pause is an hour: only an excuse ends it.
    driver = ElasticDriver(
        Rendezvous(), FixedHosts({"host0": 1, "host1": 1}), 1, 2, timeout=60, cooldown_range=(3600, 3600)
    )
    starts: list[str] = []
    failed = threading.Event()

    def rank(slot: Any, _: list[Any]) -> tuple[int, float]:  # noqa: ANN401 (Horovod's)
        starts.append(slot.hostname)
        driver.has_come("global_0", str(slot.rank))
        if slot.hostname == "host0":
            survive()
        elif starts.count("host1") == 1:
            failed.set()
            return 1, time.time()
        return 0, time.time()

    def survive() -> None:
        failed.wait()
        driver.record_ready("host0", 0)  # as after a reduction that failed
        assert driver.world_size() == 1
        if case == "replaced":
            STARTS.write_text("host1 1\n")
        for _ in range(5):
            time.sleep(DISCOVER_HOSTS_FREQUENCY_SECS)
            if "host1" in driver._host_manager.current_hosts.available_hosts:
                break
        driver.record_ready("host0", 0)  # as when new hosts are announced

    driver.wait_for_available_slots(2)
    driver.start(2, rank)
    driver.get_results()
    print(*sorted(starts))


main(*sys.argv[1:])
