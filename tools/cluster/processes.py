"""Programs in the background. A file records each with its start time, so that no other process is ever ended."""

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

    from .home import Home

ENDS_WITHIN = 20.0  # seconds from SIGKILL to the end of a process; longer means that the kernel blocks it


@dataclass(frozen=True)
class Process:
    """A process that was started here. The kernel reuses a pid one day, but not with the same start time."""

    name: str
    pid: int
    started: int  # clock ticks after boot

    def runs(self) -> bool:
        """True while this same process runs; a zombie does not run."""
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
    """Start a program and record it. Its output goes to the log with its name."""
    home.logs.mkdir(parents=True, exist_ok=True)
    with_parent = ["setpriv", "--pdeathsig", "KILL"] if dies_with_us else []
    with (home.logs / f"{name}.log").open("ab") as log:
        child = subprocess.Popen(
            [*with_parent, *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=home.path,
            start_new_session=not dies_with_us, process_group=0 if dies_with_us else None,
            env={**os.environ, **(environment or {}), "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"})
    child.returncode = 0  # it outlives this command; without this, Popen would warn that it was not waited for
    process = Process(name, child.pid, _started(child.pid) or 0)
    _write(home, [*recorded(home), process])
    return process


def recorded(home: Home) -> list[Process]:
    """The processes that were started for this cluster and not ended, in that order. Some may have died."""
    try:
        return [Process(**entry) for entry in json.loads(home.record.read_text())]
    except FileNotFoundError:
        return []


def end_all(home: Home) -> None:
    """Kill everything that was started, the last one first. A clean end is not needed: the data is removed, too."""
    for process in reversed(recorded(home)):
        end(process)
    home.record.unlink(missing_ok=True)


def end(process: Process) -> None:
    """Kill a process and wait until it is gone."""
    deadline = time.monotonic() + ENDS_WITHIN
    if process.runs():
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    while process.runs():
        if time.monotonic() > deadline:
            raise ClusterError(f"{process.name} (process {process.pid}) still runs {ENDS_WITHIN:.0f} s after SIGKILL")
        time.sleep(0.01)


def check(home: Home) -> None:
    """Raise an error with the end of its log if one of the processes has died."""
    for process in recorded(home):
        if not process.runs():
            raise ClusterError(f"{process.name} ended by itself; its log ends with:\n{last_lines(home, process.name)}")


def last_lines(home: Home, name: str, count: int = 15) -> str:
    """The last lines of a process's log."""
    with contextlib.suppress(FileNotFoundError):
        lines = (home.logs / f"{name}.log").read_text(errors="replace").splitlines()
        return "\n".join(line[:300] for line in lines[-count:])
    return "(no log)"


def _write(home: Home, processes: Iterable[Process]) -> None:
    fresh = home.record.with_suffix(".new")
    fresh.write_text(json.dumps([asdict(process) for process in processes], indent=1))
    fresh.replace(home.record)
