"""Who gets a signal that was sent to the launcher."""

from __future__ import annotations

from contextlib import suppress

from mpiboot.bootstrap import reaper

# A shell that waits for a program does not pass signals on: SIGTERM ends the shell and leaves mpirun running.
_SHELLS = frozenset({"sh", "bash", "dash", "ash", "busybox", "zsh", "ksh", "mksh"})


def receivers(pid: int) -> list[int]:
    """The command and, below it as long as they are shells, what they run. Not the ssh clients of an mpirun."""
    found = [pid]
    if _name(pid) in _SHELLS:
        for child in reaper.children(pid):
            found += receivers(child)
    return found


def forward(pid: int, number: int) -> None:
    # Deepest first: a shell that dies first could take the terminal, or the group, with it.
    for receiver in reversed(receivers(pid)):
        reaper.send(receiver, number)


def _name(pid: int) -> str:
    with suppress(OSError), open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
        return file.read().strip()
    return ""
