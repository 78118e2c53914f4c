"""The record of one run of a job: a directory with a description, the events and the output of its processes.

It holds no environment, no command line and no manifest: secrets are often in them. For this user alone.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from mpiboot.engines.records.process_start import start_of

JOB = "job.json"
EVENTS = "events.jsonl"
LOGS = "log"


@dataclass(frozen=True)
class Record:
    """What is known of the run. Times are seconds since 1970."""

    name: str
    engine: str
    run: str  # differs for each start
    image: str
    workers: int
    created: float
    pid: int  # of its `mpiboot run`
    started: str  # when that process started
    ended: float | None = None
    exit_code: int | None = None
    reason: str = ""

    @property
    def alive(self) -> bool:
        """Whether its `mpiboot run` still works on it."""
        return self.ended is None and start_of(self.pid) == self.started


def state_directory() -> Path:
    """Where mpiboot keeps what this user's commands must find later."""
    base = os.environ.get("XDG_STATE_HOME") or ""
    return (Path(base) if base.startswith("/") else Path.home() / ".local" / "state") / "mpiboot"


def directory_of(name: str, run: str) -> Path:
    return state_directory() / "records" / f"{name}.{run}"


def write(directory: Path, record: Record) -> None:
    """Replace the description as a whole. OSError if the directory was removed meanwhile."""
    beside = directory / f".{JOB}.new"
    beside.write_text(json.dumps(asdict(record), indent=1), "utf-8")
    beside.replace(directory / JOB)


def read(directory: Path) -> Record | None:
    """The description in a directory, if there is a whole one."""
    try:
        return Record(**json.loads((directory / JOB).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def records() -> list[tuple[Path, Record]]:
    """All of this user, the newest first."""
    try:
        directories = list((state_directory() / "records").iterdir())
    except OSError:
        return []
    pairs = ((directory, read(directory)) for directory in directories if not directory.name.startswith("."))
    return sorted(((at, record) for at, record in pairs if record), key=lambda pair: -pair[1].created)


def remove(directory: Path) -> None:
    """Remove a record. A `mpiboot run` that still writes to it writes no more."""
    gone = directory.with_name(f".{directory.name}.{os.getpid()}.gone")
    with suppress(OSError):
        directory.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)
