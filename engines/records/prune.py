"""Which records are removed: the oldest of those whose job has ended, when there are too many or they are too large."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mpiboot.engines.records import record as records

if TYPE_CHECKING:
    from mpiboot.engines.records.record import Record

MOST_JOBS = 50
MOST_BYTES = 256 * 2**20


def make_room() -> None:
    """Remove what is beyond the limits; the newest stay."""
    size = 0
    ended = [directory for directory, record in records.records() if not record.alive]
    for number, directory in enumerate(ended):
        size += size_of(directory)
        if number >= MOST_JOBS or size > MOST_BYTES:
            records.remove(directory)


def older_than(moment: float) -> list[tuple[Path, Record]]:
    """The records of jobs that had ended before a moment."""
    return [
        (directory, record)
        for directory, record in records.records()
        if not record.alive and (record.ended or record.created) <= moment
    ]


def size_of(directory: Path) -> int:
    """The bytes of the files in it."""
    total = 0
    for folder, _, files in os.walk(directory):
        for file in files:
            with suppress(OSError):  # it is being removed
                total += Path(folder, file).stat().st_size
    return total
