"""The command: started, given every signal that we get, and outlived by nothing."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.bootstrap import reaper, spawn
from mpiboot.bootstrap.exit import ENDED_BY_US
from mpiboot.bootstrap.forward import forward
from mpiboot.bootstrap.signals import ENDING
from mpiboot.bootstrap.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mpiboot.bootstrap.readiness import Watch
    from mpiboot.bootstrap.signals import Signals

# From a signal to what is left of the command: it may be an mpirun that ends its ranks in good order.
ENDING_MAY_TAKE = 10.0
LEFTOVERS_MAY_TAKE = 2.0


class Outcome(NamedTuple):
    """How the command ended. `cause` is set if it was ended by us, and says why."""

    code: int
    cause: str = ""


class Command:
    """One running command. `run` returns when it has ended; what it left behind has ended, too."""

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str], watch: Watch, signals: Signals) -> None:
        """Starts it. Raises `spawn.NotFoundError` or `spawn.NotExecutableError`."""
        self._watch, self._signals = watch, signals
        self._terminal = Terminal()
        # Before the start: what the command leaves at once would be the system's, and never be ended.
        reaper.adopt_orphans()
        self.pid = spawn.spawn(argv, environ, own_group=True)
        self._terminal.lend(self.pid)
        self._code: int | None = None
        self._told_to_end = False
        self._cause, self._kill_at = "", float("inf")

    def run(self, look: Callable[[float], float]) -> Outcome:
        """Until the command has ended. `look(now)` is called again and again, and says when it wants to be next."""
        self._watch.add(self._signals, self._signalled)
        try:
            while self._code is None:
                now = time.monotonic()
                if now >= self._kill_at:
                    reaper.send(self.pid, signal.SIGKILL)
                    self._kill_at = float("inf")
                self._watch.step(min(look(now), self._kill_at))
            self._end_leftovers()
        finally:
            self._watch.drop(self._signals)
            self._terminal.take_back()
        return Outcome(ENDED_BY_US, self._cause) if self._cause else Outcome(self._code)

    def end(self, cause: str) -> None:
        """End it for this reason: politely first."""
        if not self._cause:
            self._cause = cause
            self._told_to_end = True
            self._kill_at = time.monotonic() + ENDING_MAY_TAKE
            forward(self.pid, signal.SIGTERM)

    def _signalled(self, _: float) -> None:
        for number in self._signals.take():
            if number == signal.SIGCHLD:
                self._collect()
            else:
                self._told_to_end |= number in ENDING
                forward(self.pid, number)

    def _collect(self) -> None:
        for event in reaper.reap():
            if event.pid != self.pid:
                continue
            if isinstance(event, reaper.Ended):
                self._code = event.code
            else:
                self._stop_too()

    def _stop_too(self) -> None:
        """Ctrl-Z: stop like the command, so that the shell above notices; go on when it says so."""
        if os.getpid() == 1 or not self._terminal.held:
            return
        self._terminal.take_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._terminal.lend(self.pid)

    def _end_leftovers(self) -> None:
        """End what the command started and left, and only that: in a container others may run beside it."""
        grace = ENDING_MAY_TAKE if self._told_to_end else 0.0
        steps = ((0, grace), (signal.SIGTERM, LEFTOVERS_MAY_TAKE), (signal.SIGKILL, LEFTOVERS_MAY_TAKE))
        for number, seconds in steps:
            for pid in reaper.descendants(os.getpid()) if number else ():
                reaper.send(pid, number)
            if self._all_gone(time.monotonic() + seconds):
                return

    def _all_gone(self, deadline: float) -> bool:
        """Wait for it; whoever tells us once more to end wants it sooner."""
        while True:
            reaper.reap()
            if not reaper.descendants(os.getpid()):
                return True
            if time.monotonic() >= deadline or any(told in ENDING for told in self._signals.take()):
                return False
            self._signals.wait(0.05)
