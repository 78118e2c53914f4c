"""Data in before the run and out after it: by a program of its own, as S3's library is large and slow to import."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.bootstrap import exit as ending
from mpiboot.bootstrap import reaper, spawn
from mpiboot.bootstrap.signals import ENDING
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.bootstrap.signals import Signals

PROGRAM = "mpiboot.bootstrap.s3"


class DataError(UserError):
    """The data could not be fetched or stored; the text says why."""

    exit_code = ending.NO_DATA


class DataInterruptedError(UserError):
    """A signal ended it."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name} while data was moved")
        self.exit_code = ending.by_signal(number)


class Data(NamedTuple):
    """What to fetch and what to store: FROM and TO, or None. `keys` is a directory of files, or empty."""

    download: tuple[str, str] | None
    upload: tuple[str, str] | None
    keys: str

    def fetch(self, environ: Mapping[str, str], signals: Signals) -> None:
        """Returns when it is here."""
        if self.download:
            _run("fetch", self.download, self.keys, environ, signals)

    def store(self, environ: Mapping[str, str], signals: Signals) -> None:
        """Returns when it is there."""
        if self.upload:
            _run("store", self.upload, self.keys, environ, signals)


def _run(what: str, pair: tuple[str, str], keys: str, environ: Mapping[str, str], signals: Signals) -> None:
    readable, writable = os.pipe2(os.O_CLOEXEC)
    argv = [sys.executable, *(["-I"] if sys.flags.isolated else []), "-m", PROGRAM, what, *pair, keys]
    try:
        pid = spawn.spawn(argv, environ, stdout=writable)
    finally:
        os.close(writable)
    with open(readable, encoding="utf-8", errors="replace") as reason:
        code = _wait(pid, signals)
        if code:
            raise DataError(reason.read().strip() or f"cannot {what} data: {PROGRAM} ended with code {code}")


def _wait(pid: int, signals: Signals) -> int:
    """Its exit code. Process 1 collects orphans meanwhile; a signal that says to end ends it."""
    while True:
        for number in signals.take():
            if number in ENDING:
                reaper.send(pid, signal.SIGKILL)
                raise DataInterruptedError(number)
        for event in reaper.reap():
            if event.pid == pid and isinstance(event, reaper.Ended):
                return event.code
        signals.wait(None)
