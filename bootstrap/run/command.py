"""Starts the command, forwards every signal to it, and ends the processes that it leaves behind."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.bootstrap.exit_codes import ENDED_BY_US
from mpiboot.bootstrap.process import reaper, spawn
from mpiboot.bootstrap.process.signals import ENDING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mpiboot.bootstrap.process.signals import Signals
    from mpiboot.bootstrap.wait.loop import Loop


class Terminal:
    """Gives the terminal to a process group and takes it back. Does nothing if the launcher has no terminal."""

    def __init__(self) -> None:
        self._held = False
        with suppress(OSError):
            self._held = os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp()
        if self._held:
            # The kernel stops a background process that changes the terminal's group, unless it ignores these.
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            signal.signal(signal.SIGTTIN, signal.SIG_IGN)

    @property
    def held(self) -> bool:
        return self._held

    def lend(self, group: int) -> None:
        if self._held:
            with suppress(OSError):
                os.tcsetpgrp(0, group)
                os.killpg(group, signal.SIGCONT)  # it may have been stopped for reading too early

    def take_back(self) -> None:
        if self._held:
            with suppress(OSError):
                os.tcsetpgrp(0, os.getpgrp())


# A shell that waits for a program does not forward signals: SIGTERM ends the shell and leaves mpirun running.
_SHELLS = frozenset({"sh", "bash", "dash", "ash", "busybox", "zsh", "ksh", "mksh"})


def receivers(pid: int) -> list[int]:
    """The command, and below shells what they run. Not the ssh clients of an mpirun."""
    pids = [pid]
    if reaper.name_of(pid) in _SHELLS:
        for child in reaper.children(pid):
            pids += receivers(child)
    return pids


def forward(pid: int, number: int) -> None:
    # Deepest first: a shell that ends first could take the terminal or the group with it.
    for receiver in reversed(receivers(pid)):
        reaper.send(receiver, number)


# From the signal to the end of the command: an mpirun may need time to end its ranks.
ENDING_MAY_TAKE = 10.0
LEFTOVERS_MAY_TAKE = 2.0


class Outcome(NamedTuple):
    """How the command ended. `cause`: why mpiboot ended it, if it did. `signal`: the one that ended it, or 0.

    `asked`: the launcher was asked to end and passed that signal on. `final`: another attempt would end the same way.
    """

    code: int
    cause: str = ""
    signal: int = 0
    asked: bool = False
    final: bool = False


class Command:
    """One running command. `run` returns when the command and all that it left behind have ended."""

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str], loop: Loop, signals: Signals) -> None:
        """Starts it. Raises `spawn.NotFoundError` or `spawn.NotExecutableError`."""
        self._loop, self._signals = loop, signals
        self._terminal = Terminal()
        # Before the start: init would adopt what the command leaves at once, and the launcher could not end it.
        reaper.adopt_orphans()
        self.pid = spawn.spawn(argv, environ, own_group=True)
        self._terminal.lend(self.pid)
        self._ended: reaper.Ended | None = None
        self._ending = self._asked = False
        self._cause, self._kill_at = "", float("inf")
        self._grace, self._final = ENDING_MAY_TAKE, False

    def run(self, check: Callable[[float], float]) -> Outcome:
        """Wait until the command has ended. Calls `check(now)` repeatedly; it returns the time of its next call."""
        self._loop.add(self._signals, self._signalled)
        try:
            while self._ended is None:
                now = time.monotonic()
                if now >= self._kill_at:
                    reaper.send(self.pid, signal.SIGKILL)
                    self._kill_at, self._grace = float("inf"), 0.0  # it does not end its ssh clients any more
                self._loop.step(min(check(now), self._kill_at))
            self._end_leftovers()
        except BaseException:  # an error of mpiboot: the command must not outlive the launcher
            self._end_leftovers()
            raise
        finally:
            self._loop.drop(self._signals)
            self._terminal.take_back()
        if self._cause:
            return Outcome(ENDED_BY_US, self._cause, asked=self._asked, final=self._final)
        return Outcome(self._ended.code, signal=self._ended.signal, asked=self._asked)

    def end(self, cause: str, *, within: float = ENDING_MAY_TAKE, final: bool = False) -> None:
        """End the command for this reason: SIGTERM, then SIGKILL after this many seconds."""
        if not self._cause:
            self._cause, self._grace, self._final = cause, within, final
            self._ending = True
            self._kill_at = time.monotonic() + within
            forward(self.pid, signal.SIGTERM)

    def _signalled(self, _: float) -> None:
        for number in self._signals.take():
            if number == signal.SIGCHLD:
                self._collect()
            else:
                self._asked |= number in ENDING
                self._ending |= self._asked
                forward(self.pid, number)

    def _collect(self) -> None:
        for event in reaper.reap():
            if event.pid != self.pid:
                continue
            if isinstance(event, reaper.Ended):
                self._ended = event
            else:
                self._stop_too()

    def _stop_too(self) -> None:
        """Ctrl-Z: stop like the command, so that the shell above notices; continue when the shell continues it."""
        if os.getpid() == 1 or not self._terminal.held:
            return
        self._terminal.take_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._terminal.lend(self.pid)

    def _end_leftovers(self) -> None:
        """End the processes that the command left behind, and no others: a container may run more."""
        grace = self._grace if self._ending else 0.0
        steps = ((0, grace), (signal.SIGTERM, LEFTOVERS_MAY_TAKE), (signal.SIGKILL, LEFTOVERS_MAY_TAKE))
        for number, seconds in steps:
            for pid in reaper.descendants(os.getpid()) if number else ():
                reaper.send(pid, number)
            if self._all_gone(time.monotonic() + seconds):
                return

    def _all_gone(self, deadline: float) -> bool:
        """Wait until they have ended. A further signal ends the wait early."""
        while True:
            reaper.reap()
            if not reaper.descendants(os.getpid()):
                return True
            if time.monotonic() >= deadline or any(number in ENDING for number in self._signals.take()):
                return False
            self._signals.wait(0.05)
