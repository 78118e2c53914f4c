"""Programs in the background: each written down with its start time, so that nothing else is ever ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .places import Home

ENDS_WITHIN = 20.0  # seconds from SIGKILL to the process being gone: more means the kernel holds it


@dataclass(frozen=True)
class Process:
    """A process that was started here. The kernel gives a pid again one day, but not with the same start time."""

    name: str
    pid: int
    started: int  # clock ticks after boot

    def lives(self) -> bool:
        """True while it is this very process, and not a dead one that waits to be collected."""
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)
        return _started(self.pid) == self.started


def _started(pid: int) -> int | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else int(fields[19])


def start(home: Home, name: str, command: Sequence[str], *, dies_with_us: bool = False,
          environment: dict[str, str] | None = None) -> Process:
    """Start a program and write it down. Its output goes to the log of its name."""
    home.logs.mkdir(parents=True, exist_ok=True)
    with_parent = ["setpriv", "--pdeathsig", "KILL"] if dies_with_us else []
    with (home.logs / f"{name}.log").open("ab") as log:
        child = subprocess.Popen(
            [*with_parent, *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=home.path,
            start_new_session=not dies_with_us, process_group=0 if dies_with_us else None,
            env={**os.environ, **(environment or {}), "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"})
    child.returncode = 0  # it outlives this command: Popen shall not complain that nobody waited for it
    process = Process(name, child.pid, _started(child.pid) or 0)
    _write(home, [*recorded(home), process])
    return process


def recorded(home: Home) -> list[Process]:
    """What was started for this home and not ended, in that order; some of it may have died."""
    try:
        return [Process(**entry) for entry in json.loads(home.record.read_text())]
    except FileNotFoundError:
        return []


def end_all(home: Home) -> None:
    """End everything that was started, the last one first. Nothing is asked to finish: its data goes too."""
    for process in reversed(recorded(home)):
        end(process)
    home.record.unlink(missing_ok=True)


def end(process: Process) -> None:
    """Kill a process and wait until it is gone."""
    deadline = time.monotonic() + ENDS_WITHIN
    if process.lives():
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    while process.lives():
        if time.monotonic() > deadline:
            raise ClusterError(f"{process.name} (process {process.pid}) lives {ENDS_WITHIN:.0f} s after SIGKILL")
        time.sleep(0.01)


def check(home: Home) -> None:
    """Raise with the end of its log when something that was started is dead."""
    for process in recorded(home):
        if not process.lives():
            raise ClusterError(f"{process.name} ended by itself; its log ends with:\n{last_lines(home, process.name)}")


def last_lines(home: Home, name: str, count: int = 15) -> str:
    """The end of a process's log."""
    with contextlib.suppress(FileNotFoundError):
        lines = (home.logs / f"{name}.log").read_text(errors="replace").splitlines()
        return "\n".join(line[:300] for line in lines[-count:])
    return "(no log)"


def _write(home: Home, processes: Iterable[Process]) -> None:
    fresh = home.record.with_suffix(".new")
    fresh.write_text(json.dumps([asdict(process) for process in processes], indent=1))
    fresh.replace(home.record)
