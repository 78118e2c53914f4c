"""Which tests share one of xdist's processes, and which files begin first.

If a file that takes minutes begins last, the run waits for one core. So files begin in the order of durations.json, the
longest first; a file that is not in it begins last. `make test ARGS=--record-durations` records the files that it runs.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

DURATIONS = Path(__file__).with_name("durations.json")

# These tests share two API servers and operators. To start and run more of them costs more than most tests take; with
# one, the whole run waits for it.
SERVERS = 2
API_TESTS = ("tests/controller/", "tests/job/test_api_server.py", "tests/cluster/test_api_server.py")


# Both install the operator in the one namespace of its manifests.
INSTALLING = ("tests/e2e/test_installation.py", "tests/e2e/test_registry.py")

# Training takes minutes with each framework, and the two share nothing.
FRAMEWORKS, TRAINING = ("torch", "tensorflow"), "tests/horovod/test_training.py"


class Together(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Each process gets a file at a time. Tests with an API server share two processes, Horovod's trainings use two."""

    def _split_scope(self, nodeid: str) -> str:
        file, _, test = nodeid.partition("::")
        if file == TRAINING:
            return next((f"{file}: {framework}" for framework in FRAMEWORKS if f"[{framework}" in test), file)
        return _group(file)


class Recorder:
    """Adds up the seconds of each file's tests, and writes them to durations.json at the end."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid.partition("::")[0]] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Files that did not run, or whose tests were all skipped, keep what was recorded before."""
        ran = {file: round(seconds, 1) for file, seconds in self._seconds.items() if seconds >= 0.1}
        found = {**recorded(), **ran}
        kept = {file: seconds for file, seconds in found.items() if (DURATIONS.parents[1] / file).exists()}
        lines = sorted(kept.items(), key=lambda item: -item[1])
        DURATIONS.write_text(json.dumps(dict(lines), indent=1) + "\n")


def recorded() -> dict[str, float]:
    """Seconds by file, as paths from the root."""
    found: dict[str, float] = json.loads(DURATIONS.read_text())
    return found


def longest_first(items: list[pytest.Item], durations: Mapping[str, float]) -> None:
    """Sort whole files, or groups of files that share a process. Inside them the order stays."""
    seconds: dict[str, float] = {}
    for file, duration in durations.items():
        group = _group(file)
        seconds[group] = seconds.get(group, 0.0) + duration
    order = {group: turn for turn, group in enumerate(sorted(seconds, key=lambda group: -seconds[group]))}
    items.sort(key=lambda item: order.get(_group(item.nodeid.partition("::")[0]), len(order)))


def _group(file: str) -> str:
    """The files that one process takes one after the other. The length of its name divides the API tests."""
    if file in INSTALLING:
        return INSTALLING[0]
    return f"API server {len(file) % SERVERS}" if file.startswith(API_TESTS) else file
