"""Only processes that were started here are ended, and a lock lets one process work at a time."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from cluster import processes
from cluster.errors import ClusterError
from cluster.home import Home
from cluster.lock import only_one
from cluster.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOLDER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from cluster.lock import only_one
with only_one(Path(sys.argv[2]), "a test"):
    print("mine", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """The empty folder of a cluster, whose processes end with the test."""
    home = Home(tmp_path)
    yield home
    processes.end_all(home)


def test_a_started_process_runs_until_it_is_ended(home: Home) -> None:
    process = processes.start(home, "sleeper", ["sleep", "600"])
    assert process.runs()
    assert processes.recorded(home) == [process]
    processes.end_all(home)
    assert not process.runs()
    assert processes.recorded(home) == []


def test_another_process_with_the_same_pid_is_not_ended(home: Home) -> None:
    process = processes.start(home, "sleeper", ["sleep", "600"])
    earlier = processes.Process("earlier", process.pid, process.started - 1)
    assert not earlier.runs()
    processes.end(earlier)
    assert process.runs()


def test_the_error_of_a_dead_process_has_the_end_of_its_log(home: Home) -> None:
    process = processes.start(home, "failing", ["sh", "-c", "echo the reason >&2; exit 3"])
    wait_for("its end", lambda: not process.runs(), 20)
    with pytest.raises(ClusterError, match=r"failing ended by itself(.|\n)*the reason"):
        processes.check(home)


def test_a_second_process_waits_for_the_lock_and_names_its_holder(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tools = str(processes.__file__).rpartition("/cluster/")[0]
    command = [sys.executable, "-c", HOLDER, tools, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "mine\n"
        waiter = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True)
        assert waiter.stderr is not None
        assert "waiting for another process: a test" in waiter.stderr.readline()
        holder.kill()  # the kernel frees the lock, however its holder ends
        out, _ = waiter.communicate("", timeout=60)
        assert out == "mine\n"
    with only_one(tmp_path / "lock", "this test"):
        assert capsys.readouterr().err == ""
