"""Downloads data before the run and uploads it afterwards, by another program: S3's library is slow to import."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

from mpiboot.bootstrap import exit_codes
from mpiboot.bootstrap.process import reaper, spawn
from mpiboot.bootstrap.process.signals import ENDING, EndedBySignalError
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.bootstrap.process.signals import Signals

PROGRAM = "mpiboot.bootstrap.data.s3"


class DataError(UserError):
    """The data could not be fetched or stored."""

    exit_code = exit_codes.NO_DATA


def fetch(pair: tuple[str, str], keys: str, environ: Mapping[str, str], signals: Signals) -> None:
    """Fetch from a URI into a directory. `keys` is a directory of files, or empty."""
    _run("fetch", pair, keys, environ, signals)


def store(pair: tuple[str, str], keys: str, environ: Mapping[str, str], signals: Signals) -> None:
    """Store a directory under a URI."""
    _run("store", pair, keys, environ, signals)


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
    """The program's exit code. Collects orphans meanwhile, and ends the program if a signal should end the launcher."""
    while True:
        for number in signals.take():
            if number in ENDING:
                reaper.send(pid, signal.SIGKILL)
                raise EndedBySignalError(number, "data was moved")
        for event in reaper.reap():
            if event.pid == pid and isinstance(event, reaper.Ended):
                return event.code
        signals.wait(None)
