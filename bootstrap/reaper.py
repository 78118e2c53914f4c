"""The duties of process 1: collect every child that ends, ours or adopted; find and signal what descends from us."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import NamedTuple


class Ended(NamedTuple):
    """A child that ended, with the exit code a shell would report."""

    pid: int
    code: int


class Stopped(NamedTuple):
    """A child that was stopped, not ended: somebody typed Ctrl-Z."""

    pid: int


def reap() -> list[Ended | Stopped]:
    """All that ended or stopped since the last call: signals merge, so one SIGCHLD may stand for many."""
    found: list[Ended | Stopped] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        found.append(Stopped(pid) if os.WIFSTOPPED(status) else Ended(pid, exit_code(status)))


def exit_code(status: int) -> int:
    """The program's own code, or 128 + the signal that ended it."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def adopt_orphans() -> bool:
    """Make orphaned descendants our children, as process 1 has it anyway. False: the kernel does not offer it."""
    if os.getpid() == 1:
        return True
    import ctypes

    set_child_subreaper = 36
    try:
        return bool(ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def children(pid: int) -> list[int]:
    """The children of a process, also those that its threads started."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                found += [int(word) for word in file.read().split()]
    except OSError:  # it ended meanwhile, or the kernel has no such file
        if os.path.exists(f"/proc/{pid}") and not os.path.exists("/proc/thread-self/children"):
            return _children_by_search(pid)
    return found


def descendants(pid: int) -> list[int]:
    """All processes below this one, parents before children."""
    found = children(pid)
    for child in found:
        found += children(child)
    return found


def send(pid: int, number: int) -> None:
    """Send the signal; a process that is gone needs none, and one of another user is not ours to end."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _children_by_search(pid: int) -> list[int]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
            if int(file.read().rpartition(b")")[2].split()[1]) == pid:
                found.append(int(name))
    return found
