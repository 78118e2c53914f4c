"""The order of test files: the longest first, by the durations of an earlier run."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import order

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass
class Item:
    """A collected test, as far as the order looks at it."""

    nodeid: str


def sorted_files(durations: dict[str, float], *files: str) -> list[str]:
    items: Any = [Item(f"{file}::test_{number}") for file in files for number in (1, 2)]
    order.longest_first(items, durations)
    assert [item.nodeid[-1] for item in items] == ["1", "2"] * len(files)
    return [item.nodeid.partition("::")[0] for item in items[::2]]


def test_longer_files_begin_first_and_unknown_ones_last() -> None:
    durations = {"tests/a.py": 1.0, "tests/b.py": 9.0}
    found = sorted_files(durations, "tests/new.py", "tests/a.py", "tests/b.py")
    assert found == ["tests/b.py", "tests/a.py", "tests/new.py"]


def test_files_that_share_an_api_server_count_together() -> None:
    files = [f"tests/controller/{number}.py" for number in range(20)]
    groups = {order._group(file) for file in files}
    assert groups == {"API server 0", "API server 1"}
    first = [file for file in files if order._group(file) == "API server 0"][:2]
    durations = {first[0]: 5.0, "tests/b.py": 8.0, first[1]: 5.0}
    assert sorted_files(durations, *durations) == [*first, "tests/b.py"]


SLOW = """
import time
def test_one(): time.sleep(0.2)
def test_two(): time.sleep(0.2)
"""
CONFTEST = """
import pathlib, sys
sys.path.insert(0, {root!r})
from tests import order
order.DURATIONS = pathlib.Path({file!r})
def pytest_configure(config): config.pluginmanager.register(order.Recorder())
"""


def test_a_run_records_the_seconds_of_its_files(tmp_path: Path) -> None:
    durations = tmp_path / "tests" / "durations.json"
    durations.parent.mkdir()
    durations.write_text('{"removed.py": 3.0}')
    (tmp_path / "test_slow.py").write_text(SLOW)
    (tmp_path / "conftest.py").write_text(CONFTEST.format(root=str(REPOSITORY), file=str(durations)))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "test_slow.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(durations.read_text())
    assert list(found) == ["test_slow.py"]
    assert found["test_slow.py"] >= 0.4
