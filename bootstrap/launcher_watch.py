"""How a worker notices that its launcher has gone: by what DNS answers for its name."""

# docs/decisions/0007-workers-without-an-operator.md
from __future__ import annotations

import os
import socket
import threading
import time
from enum import Enum
from typing import TYPE_CHECKING

from mpiboot.bootstrap import exit_codes
from mpiboot.bootstrap.process.signals import DONE
from mpiboot.bootstrap.wait import resolver
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable


CHECK_EVERY = 5.0
# Before the launcher's name resolves for the first time: a launcher may end after a second.
FIRST_CHECKS_EVERY = 1.0
# DNS caches may hold a "no such name" from the time before the launcher for less than this.
GONE_AFTER = 30.0
# ... and so many clear answers: time passes as well while DNS does not answer.
GONE_AFTER_CHECKS = 5


class Presence(Enum):
    """The result of one check. UNKNOWN: DNS gave no clear answer, so the check does not count."""

    HERE = "here"
    ABSENT = "absent"
    UNKNOWN = "unknown"


class Absence:
    """Counts the results of the checks. `verdict` returns a reason once the worker should end."""

    def __init__(self, launcher: str, limit: float, now: float) -> None:
        self._launcher, self._limit, self._began = launcher, limit, now
        self._absent_since, self._absences = now, 0
        self.came = False

    def verdict(self, presence: Presence, now: float) -> str:
        """Why the worker should end; empty as long as it should not."""
        if presence is Presence.HERE:
            self.came, self._absences = True, 0
        if presence is not Presence.ABSENT:
            return ""
        self._absent_since = self._absent_since if self._absences else now
        self._absences += 1
        absent, waited = now - self._absent_since, now - self._began
        if self.came and absent >= GONE_AFTER and self._absences >= GONE_AFTER_CHECKS:
            return f"the launcher {self._launcher} is gone: its name has not resolved for {absent:.0f} s"
        if not self.came and waited >= self._limit:
            return f"no launcher {self._launcher} after {waited:.0f} s (limit {self._limit:g} s, --init-timeout)"
        return ""


def check(name: str) -> Presence:
    """Resolve the name once. Only a clear "no such name" means absence: a DNS server in trouble proves nothing."""
    try:
        socket.getaddrinfo(name, None, 0, socket.SOCK_STREAM)
    except socket.gaierror as error:
        return Presence.ABSENT if error.errno in (socket.EAI_NONAME, socket.EAI_NODATA) else Presence.UNKNOWN
    except (OSError, UnicodeError):
        return Presence.UNKNOWN
    return Presence.HERE


def absolute_name(launcher: str) -> str:
    """The launcher's longest name, for which a cluster's DNS asks no other server."""
    return resolver.questions(launcher, resolver.search_list())[0]


class NoLauncherError(UserError):
    """The launcher never started, so the worker has nothing to do."""

    exit_code = exit_codes.OUT_OF_TIME


class LauncherWatch:
    """Checks in a thread, since DNS may hang. Sends DONE to this process once the worker should end."""

    def __init__(self, launcher: str, limit: float, log: Callable[[str], None]) -> None:
        self._launcher, self._log = launcher, log
        self._absence = Absence(launcher, limit, time.monotonic())
        self._name = absolute_name(launcher)
        self._reason = ""
        threading.Thread(target=self._run, name="launcher", daemon=True).start()

    def end_reason(self) -> str:
        """Why the worker ends. Raises NoLauncherError if the launcher never started, which is a failure."""
        if self._reason and not self._absence.came:
            raise NoLauncherError(self._reason)
        return self._reason or "the launcher has ended"

    def _run(self) -> None:
        while not self._reason:
            came = self._absence.came
            self._reason = self._absence.verdict(check(self._name), time.monotonic())
            if self._absence.came and not came:
                self._log(f"the launcher {self._launcher} has started")
            if not self._reason:
                time.sleep(CHECK_EVERY if self._absence.came else FIRST_CHECKS_EVERY)
        os.kill(os.getpid(), DONE)
