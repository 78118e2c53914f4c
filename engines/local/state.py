"""The jobs of this machine, for other terminals: a directory for each, which exists as long as the job.

It appears and disappears as a whole. The directory of a job whose process is gone (killed, or before the last boot) is
stale. The kernel uses process numbers again, so a process is identified by its number and the time of its start.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mpiboot.engines.records.process_start import start_of
from mpiboot.engines.records.record import state_directory
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORD = "job.json"


@dataclass(frozen=True)
class Record:
    """A job that runs, or ran, on this machine."""

    job: str
    pid: int
    started: str  # of the process
    created: float  # seconds since 1970
    workers: int
    scratch: str  # its private directory with the keys
    run: str = ""  # differs for each start

    @property
    def alive(self) -> bool:
        """Whether the process that runs it is still there."""
        return start_of(self.pid) == self.started


def jobs_directory() -> Path:
    """Where the jobs of this user are."""
    return state_directory() / "jobs"


def enter(record: Record) -> Path:
    """Make the job's directory, its name now taken; raises if a job of that name runs."""
    directory = jobs_directory()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = directory / f".{record.job}.{os.getpid()}.new"
        beside.mkdir(mode=0o700)
        (beside / RECORD).write_text(json.dumps(asdict(record), indent=1), "utf-8")
    except OSError as error:
        raise UserError(f"cannot write {directory}: {error.strerror}; say where with XDG_STATE_HOME") from error
    target = directory / record.job
    try:
        while True:
            with suppress(OSError):
                beside.rename(target)  # atomic, and refused if something is in the target
                return target
            there = read(target)
            if there and there.alive:
                raise UserError(
                    f"a job named {record.job} is running (process {there.pid}); see: mpiboot ps, end it: "
                    f"mpiboot delete {record.job}, or use --name"
                )
            remove(target, there)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def read(directory: Path) -> Record | None:
    """The record in a job's directory."""
    try:
        return Record(**json.loads((directory / RECORD).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def records() -> Iterator[tuple[Path, Record]]:
    """All jobs, stale ones too, by name."""
    with suppress(OSError):
        for directory in sorted(jobs_directory().iterdir()):
            if not directory.name.startswith(".") and (record := read(directory)):
                yield directory, record


def remove(directory: Path, record: Record | None) -> None:
    """Remove a job's directories."""
    if record and Path(record.scratch).name.startswith("mpiboot-"):
        shutil.rmtree(record.scratch, ignore_errors=True)
    gone = directory.with_name(f".{directory.name}.{os.getpid()}.gone")
    with suppress(OSError):
        directory.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)
