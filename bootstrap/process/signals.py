"""Signals as data: a selectors loop reads them from a descriptor, in order of arrival."""

from __future__ import annotations

import os
import select
import signal
from typing import TYPE_CHECKING

from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType

# The signals that a launcher forwards to its command.
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH)
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# The launcher sends it to its workers when the command has ended.
DONE = signal.SIGUSR1


class EndedBySignalError(UserError):
    """A signal ended mpiboot before the command ran, or after it."""

    def __init__(self, number: int, doing: str) -> None:
        self.exit_code = 128 + number
        super().__init__(f"ended by {signal.Signals(number).name} while {doing} (exit {self.exit_code})")


class Signals:
    """Catches the given signals and SIGCHLD until `close`. Only one may be open, in the main thread."""

    def __init__(self, caught: Iterable[int] = FORWARDED) -> None:
        self._readable, self._writable = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._old_wakeup = signal.set_wakeup_fd(self._writable, warn_on_full_buffer=False)
        # A signal that was ignored at the start stays ignored: nohup wants that. Not in process 1, where container
        # runtimes leave any mask.
        keep = (signal.SIG_IGN,) if os.getpid() != 1 else ()
        chosen = [s for s in caught if signal.getsignal(s) not in keep]
        self._old = {number: signal.signal(number, _noted) for number in (*chosen, signal.SIGCHLD)}

    def fileno(self) -> int:
        return self._readable

    def take(self) -> list[int]:
        """The signals since the last call. Never blocks."""
        try:
            return [*os.read(self._readable, 4096)]
        except BlockingIOError:
            return []

    def wait(self, seconds: float | None) -> None:
        """Wait until a signal comes, at most this long."""
        poll = select.poll()
        poll.register(self._readable, select.POLLIN)
        poll.poll(None if seconds is None else seconds * 1000)

    def close(self) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._old_wakeup)
        os.close(self._readable)
        os.close(self._writable)


def _noted(number: int, frame: FrameType | None) -> None:
    """Does nothing: the wake-up descriptor holds the signal already."""
