"""What can be seen of a running command: each mpirun below it, its ranks on this host, whether ssh went anywhere."""

from __future__ import annotations

import os
from contextlib import suppress

from mpiboot.bootstrap import reaper
from mpiboot.bootstrap.placement import Seen
from mpiboot.bootstrap.runtime import LAUNCHERS

_MPIRUNS = frozenset(LAUNCHERS)
_PROXIES = frozenset({"hydra_pmi_proxy", "hydra_bstrap_pr"})  # the kernel cuts names at 15 characters
_ENOUGH = 16


def look(command: int) -> list[Seen]:
    """Every mpirun at or below the command. Does not look below one: it may hold a thousand ssh clients."""
    found, todo = list[Seen](), [command]
    while todo and len(found) < _ENOUGH:
        pid = todo.pop(0)
        if _name(pid) in _MPIRUNS and (argv := _argv(pid)) and not argv[0].endswith("sh"):
            found.append(Seen(pid, argv, _ranks_below(pid)))
        else:
            todo += reaper.children(pid)
    return found


def _ranks_below(pid: int) -> int:
    """The children of an mpirun, or of the proxy that a Hydra has on this host, that are neither ssh nor proxy."""
    ranks = 0
    for child in reaper.children(pid)[:256]:
        name = _name(child)
        if name in _PROXIES:
            ranks += _ranks_below(child)
        elif name != "ssh" and not _is_shim(child):
            ranks += 1
    return ranks


def _is_shim(pid: int) -> bool:
    return any(word.endswith(("/ssh", "/shim.sh")) for word in _argv(pid)[:2])


def _name(pid: int) -> str:
    with suppress(OSError), open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
        return file.read().strip()
    return ""


def _argv(pid: int) -> tuple[str, ...]:
    with suppress(OSError), open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
        return tuple(file.read().split("\0")[:-1])
    return ()


def contacts(path: str) -> int:
    """How often ssh went to a worker, or rather how long its list is: equal means that nothing happened."""
    with suppress(OSError):
        return os.stat(path).st_size
    return 0
