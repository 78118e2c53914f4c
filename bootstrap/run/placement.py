"""Whether the ranks run where they should: an mpirun that overlooks the hostfile runs them all on the launcher.

The launcher warns about an mpirun that has started more ranks here than the launcher has slots, and for which ssh went
to no worker at all. So it says nothing about scripts, single ranks or launchers that use no mpirun.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.bootstrap.files import read_regular
from mpiboot.bootstrap.hosts import is_own
from mpiboot.bootstrap.process import reaper
from mpiboot.bootstrap.run import hostfile
from mpiboot.job import mpi
from mpiboot.job.errors import UserError
from mpiboot.job.values import natural

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mpiboot.bootstrap.hosts import Entry


_WRONG_FOR = 0.4
_QUESTIONS = frozenset({"--version", "-V", "-version", "--help", "-h", "-help", "-info"})


class Slots(NamedTuple):
    """The slots of the hostfile."""

    own: int
    elsewhere: int
    workers: tuple[str, ...]

    @property
    def allowed_here(self) -> int:
        return max(1, self.own)


class RunningMpirun(NamedTuple):
    """A running mpirun: its arguments, and the number of ranks that it has started on this host."""

    pid: int
    argv: tuple[str, ...]
    ranks_here: int


class Placement:
    """Warns only if an mpirun is wrong for a moment: its ssh may not have started yet."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._contacts = 0
        self._before: dict[int, int] = {}  # mpirun -> the number of contacts before it started
        self._since: dict[int, float] = {}

    def warning(self, mpiruns: Iterable[RunningMpirun], contacts: int, now: float) -> str:
        """The warning, once an mpirun has been wrong for a moment; else empty. `contacts`: all contacts so far."""
        wrong = ""
        for mpirun in mpiruns:
            before = self._before.setdefault(mpirun.pid, self._contacts)
            misplaced = contacts == before and mpirun.ranks_here > self._slots.allowed_here
            if not misplaced or on_purpose(mpirun.argv, self._slots.workers):
                self._since.pop(mpirun.pid, None)
            elif now - self._since.setdefault(mpirun.pid, now) >= _WRONG_FOR:
                wrong = wrong or report(mpirun.ranks_here, self._slots)
        self._contacts = contacts
        return wrong


def at_the_end(argv: Sequence[str], slots: Slots, contacts: int, code: int, *, fills_slots: bool) -> str:
    """The warning about a command that ended before its ranks were seen. Only the command itself can be an mpirun."""
    name = argv[0].rpartition("/")[2]
    if code != 0 or contacts or not slots.elsewhere or name not in mpi.starters() or _QUESTIONS & set(argv):
        return ""
    wanted = ranks_asked_for(argv)
    if wanted is None:
        wanted = slots.own + slots.elsewhere if fills_slots else 1
    if wanted <= slots.allowed_here or on_purpose(argv, slots.workers):
        return ""
    return report(wanted, slots)


def report(ranks: int, slots: Slots) -> str:
    return (
        f"all {ranks} ranks run on the launcher, though other hosts have {slots.elsewhere} slots: mpirun contacted "
        "none of them, so it did not read the hostfile; look for settings of its own in the command line, the "
        "environment (PRTE_MCA_*, OMPI_MCA_*, HYDRA_*, I_MPI_*) and ~/.prte, ~/.openmpi"
    )


def slots_of(entries: Iterable[Entry], hostname: str) -> Slots:
    own = elsewhere = 0
    workers = []
    for entry in entries:
        if is_own(entry.name, hostname):
            own += entry.slots
        else:
            elsewhere += entry.slots
            workers.append(entry.name)
    return Slots(own, elsewhere, tuple(workers))


def ranks_asked_for(argv: Sequence[str]) -> int | None:
    """The sum of all -n of an mpirun's command line; None if it has none."""
    counts = [natural(value) for value in _values(argv, mpi.COUNT_OPTIONS)]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def on_purpose(argv: Sequence[str], workers: Sequence[str]) -> bool:
    """Whether the command line chooses the hosts, and chooses no worker."""
    named = [name.partition(":")[0] for value in _values(argv, mpi.HOST_OPTIONS) for name in value.split(",")]
    for path in _values(argv, mpi.HOSTFILE_OPTIONS):
        with suppress(OSError, UserError):
            named += [entry.name for entry in hostfile.parse(read_regular(path), path)]
    if {"fork", "isolated"} & set(argv):
        return True
    known = set(workers) | {worker.partition(".")[0] for worker in workers}
    return bool(named) and not known & set(named)


def _values(argv: Sequence[str], flags: Sequence[str]) -> list[str]:
    """The values of these flags, one for each program of `mpirun A : B`: later ones may belong to the program."""
    values, open_for_one = list[str](), True
    for word, following in zip(argv, [*argv[1:], ""], strict=True):
        flag, equals, value = word.partition("=")
        if word == ":":
            open_for_one = True
        elif open_for_one and flag in flags:
            values.append(value if equals else following)
            open_for_one = False
    return values


_LONGEST_NAME = 15  # the kernel cuts the name of a process there
_ENOUGH = 16


def running_mpiruns(command: int) -> list[RunningMpirun]:
    """Every mpirun at or below the command. Does not search below an mpirun, which may have a thousand ssh clients."""
    mpiruns, todo = list[RunningMpirun](), [command]
    starters = _cut(mpi.starters())
    while todo and len(mpiruns) < _ENOUGH:
        pid = todo.pop(0)
        if reaper.name_of(pid) in starters and (argv := _argv(pid)) and not argv[0].endswith("sh"):
            mpiruns.append(RunningMpirun(pid, argv, _ranks_below(pid)))
        else:
            todo += reaper.children(pid)
    return mpiruns


def _ranks_below(pid: int) -> int:
    """The number of children of an mpirun, or of Hydra's proxy on this host, that are neither ssh nor proxy."""
    ranks, proxies = 0, _cut(mpi.daemons())
    for child in reaper.children(pid)[:256]:
        name = reaper.name_of(child)
        if name in proxies:
            ranks += _ranks_below(child)
        elif name != "ssh" and not _is_shim(child):
            ranks += 1
    return ranks


def _cut(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name[:_LONGEST_NAME] for name in names)


def _is_shim(pid: int) -> bool:
    return any(word.endswith(("/ssh", "/shim.sh")) for word in _argv(pid)[:2])


def _argv(pid: int) -> tuple[str, ...]:
    with suppress(OSError), open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
        return tuple(file.read().split("\0")[:-1])
    return ()


def contacts(path: str) -> int:
    """The size of the list of ssh calls to workers: it grows with each call."""
    with suppress(OSError):
        return os.stat(path).st_size
    return 0
