"""Whether a worker's launcher is gone for good, from what DNS says of its name. Pure, but for `look`."""

# docs/decisions/0007-workers-without-an-operator.md
from __future__ import annotations

import socket
from enum import Enum

from mpiboot.bootstrap import names, resolver

LOOK_EVERY = 5.0
# Until it has come: one that ends at once was there, too.
FIRST_LOOKS_EVERY = 1.0
# Longer than any cache on the way holds a "no such name" that was true only before the launcher came.
GONE_AFTER = 30.0
# ... and so many clear answers: time passes as well while nobody answers.
GONE_AFTER_LOOKS = 5


class Seen(Enum):
    """What one look found. UNKNOWN: nobody could say, so it counts neither way."""

    HERE = "here"
    ABSENT = "absent"
    UNKNOWN = "unknown"


class Absence:
    """Fed with one look after the other; `verdict` is a sentence once there is no use in waiting any more."""

    def __init__(self, launcher: str, limit: float, now: float) -> None:
        self._launcher, self._limit, self._began = launcher, limit, now
        self._absent_since, self._absences = now, 0
        self.came = False

    def verdict(self, seen: Seen, now: float) -> str:
        """Why to end; empty as long as there is no reason to."""
        if seen is Seen.HERE:
            self.came, self._absences = True, 0
        if seen is not Seen.ABSENT:
            return ""
        self._absent_since = self._absent_since if self._absences else now
        self._absences += 1
        absent, waited = now - self._absent_since, now - self._began
        if self.came and absent >= GONE_AFTER and self._absences >= GONE_AFTER_LOOKS:
            return f"the launcher {self._launcher} is gone, its name for {absent:.0f} s"
        if not self.came and waited >= self._limit:
            return f"no launcher {self._launcher} after {waited:.0f} s (limit {self._limit:g} s, --init-timeout)"
        return ""


def look(question: str) -> Seen:
    """One question to the resolver. Only a clear "no such name" is an absence: a server in trouble says nothing."""
    try:
        socket.getaddrinfo(question, None, 0, socket.SOCK_STREAM)
    except socket.gaierror as error:
        return Seen.ABSENT if error.errno in (socket.EAI_NONAME, socket.EAI_NODATA) else Seen.UNKNOWN
    except (OSError, UnicodeError):
        return Seen.UNKNOWN
    return Seen.HERE


def question(launcher: str) -> str:
    """The one name to ask for: its longest form, which a cluster's own DNS answers without asking anybody else."""
    return names.questions(launcher, resolver.search_list())[0]
