"""Whether a worker's launcher is gone for good, from what DNS says of its name. Pure, but for `look`."""

# docs/decisions/0007-workers-without-an-operator.md
from __future__ import annotations

import socket
from enum import Enum

from mpiboot.bootstrap import names, resolver

LOOK_EVERY = 5.0
# Longer than any cache on the way holds a "no such name" that was true only before the launcher came.
GONE_AFTER = 30.0


class Seen(Enum):
    """What one look found. UNKNOWN: nobody could say, so it counts neither way."""

    HERE = "here"
    ABSENT = "absent"
    UNKNOWN = "unknown"


class Absence:
    """Fed with one look after the other; `verdict` is a sentence once there is no use in waiting any more."""

    def __init__(self, launcher: str, limit: float, now: float) -> None:
        self._launcher, self._limit, self._began = launcher, limit, now
        self._absent_since: float | None = None
        self.came = False

    def verdict(self, seen: Seen, now: float) -> str:
        """Why to end; empty as long as there is no reason to."""
        if seen is not Seen.ABSENT:
            self.came |= seen is Seen.HERE
            self._absent_since = None
            return ""
        if self._absent_since is None:
            self._absent_since = now
        if self.came:
            absent = now - self._absent_since
            return f"the launcher {self._launcher} is gone, its name for {absent:.0f} s" if absent >= GONE_AFTER else ""
        waited = now - self._began
        return f"no launcher {self._launcher} after {waited:.0f} s (limit {self._limit:g} s, --init-timeout)" \
            if waited >= self._limit else ""  # fmt: skip


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
