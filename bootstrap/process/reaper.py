"""The duties of process 1: collect all children that end, adopted ones too; find descendants and signal them."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import NamedTuple


class Ended(NamedTuple):
    """A child that ended: its exit code as shells report it, and the signal that ended it, or 0."""

    pid: int
    code: int
    signal: int = 0


class Stopped(NamedTuple):
    """A child that was stopped but has not ended: a user typed Ctrl-Z."""

    pid: int


def reap() -> list[Ended | Stopped]:
    """All children that ended or stopped since the last call. Signals merge: one SIGCHLD may stand for many."""
    events: list[Ended | Stopped] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
        except ChildProcessError:
            return events
        if pid == 0:
            return events
        if os.WIFSTOPPED(status):
            events.append(Stopped(pid))
        else:
            events.append(Ended(pid, exit_code(status), os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0))


def exit_code(status: int) -> int:
    """The program's own code, or 128 + the signal that ended it."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def adopt_orphans() -> bool:
    """Make this process the parent of orphaned descendants, as process 1 always is. False: the kernel cannot."""
    if os.getpid() == 1:
        return True
    import ctypes

    set_child_subreaper = 36
    try:
        return bool(ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def children(pid: int) -> list[int]:
    """The children of a process, including those that its threads started."""
    pids: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                pids += [int(word) for word in file.read().split()]
    except OSError:  # the process ended meanwhile, or the kernel lacks this file
        if os.path.exists(f"/proc/{pid}") and not os.path.exists("/proc/thread-self/children"):
            return _children_by_search(pid)
    return pids


def descendants(pid: int) -> list[int]:
    """All processes below this one, parents before children."""
    pids = children(pid)
    for child in pids:
        pids += children(child)
    return pids


def name_of(pid: int) -> str:
    """The name of a process, of which the kernel keeps 15 characters; empty if the process is gone."""
    with suppress(OSError), open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
        return file.read().strip()
    return ""


def send(pid: int, number: int) -> None:
    """Send the signal. Processes that are gone, and those of other users, are skipped."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _children_by_search(pid: int) -> list[int]:
    pids = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
            if int(file.read().rpartition(b")")[2].split()[1]) == pid:
                pids.append(int(name))
    return pids
