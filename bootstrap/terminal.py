"""The terminal, where there is one: the command gets it, as if a shell had started it."""

from __future__ import annotations

import os
import signal
from contextlib import suppress


class Terminal:
    """Lends the terminal to a process group, and takes it back. Does nothing where we do not have it ourselves."""

    def __init__(self) -> None:
        self._held = False
        with suppress(OSError):
            self._held = os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp()
        if self._held:
            # A process in the background that gives the terminal away is stopped for it, unless it ignores this.
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            signal.signal(signal.SIGTTIN, signal.SIG_IGN)

    @property
    def held(self) -> bool:
        return self._held

    def lend(self, group: int) -> None:
        if self._held:
            with suppress(OSError):
                os.tcsetpgrp(0, group)
                os.killpg(group, signal.SIGCONT)  # it may have read too early

    def take_back(self) -> None:
        if self._held:
            with suppress(OSError):
                os.tcsetpgrp(0, os.getpgrp())
