"""Signals as data: they come out of a descriptor that a selectors loop can wait for, in order of arrival."""

from __future__ import annotations

import os
import select
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType

# What a launcher passes on to its command.
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH)
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# What tells a worker that its launcher has done its work.
DONE = signal.SIGUSR1


class Signals:
    """Catches the given signals, and SIGCHLD, as long as it is open. One at a time, in the main thread."""

    def __init__(self, caught: Iterable[int] = FORWARDED) -> None:
        self._readable, self._writable = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._old_wakeup = signal.set_wakeup_fd(self._writable, warn_on_full_buffer=False)
        # A signal ignored from birth stays so: nohup means it. Not in process 1: runtimes start it with any mask.
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
        """Until a signal comes, at most so long."""
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
    """The wake-up descriptor has it already."""
