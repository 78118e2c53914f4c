"""What a launcher costs while it waits for 1,000 hosts and nothing changes."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from bench import _checkin, _sshds
from bench._launch import directory, launching, waits
from bench.harness import Row

if TYPE_CHECKING:
    import subprocess

HOSTS = 1000
# After a minute without a change a launcher polls as rarely as it ever does; it may wait for hours.
QUIET_AFTER, WATCHED_FOR = 65.0, 30.0
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


def measure() -> list[Row]:
    with directory() as path, ExitStack() as stack:
        names = [_sshds.worker(i).name for i in range(HOSTS)]
        silent, refusing, streamed = (_sshds.job(path / name, HOSTS) for name in ("silent", "refusing", "streamed"))
        refusing.publish("".join(_sshds.worker(i, network=2).line for i in range(HOSTS)))
        server = stack.enter_context(_checkin.serving(names))
        waiting = {
            "the stream calls them pending": stack.enter_context(launching(streamed, "true", **server.environ)),
            "no address is known": stack.enter_context(launching(silent, "true")),
            "all refuse connections": stack.enter_context(launching(refusing, "true")),
        }
        for process in waiting.values():
            waits(process)
        early = _cpu_shares(waiting, 10.0)
        time.sleep(QUIET_AFTER - 10.0)
        late = _cpu_shares(waiting, WATCHED_FOR)
        memory = {what: _peak_megabytes(process) for what, process in waiting.items()}
    return [
        *(Row(f"peak memory, {what}", "MB", [memory[what]], limit=60) for what in waiting),
        *(Row(f"CPU, {what}", "% of a core", [late[what]], limit=1) for what in waiting),
        *(Row(f"CPU in its first 10 s, {what}", "% of a core", [early[what]]) for what in waiting),
    ]


def _cpu_shares(processes: dict[str, subprocess.Popen[str]], seconds: float) -> dict[str, float]:
    before = {what: _cpu_seconds(process.pid) for what, process in processes.items()}
    time.sleep(seconds)
    return {what: 100 * (_cpu_seconds(process.pid) - before[what]) / seconds for what, process in processes.items()}


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


def _peak_megabytes(process: subprocess.Popen[str]) -> float:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))
