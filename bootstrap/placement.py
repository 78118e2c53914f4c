"""Do the ranks run where they should? An mpirun that overlooks the hostfile runs them all on the launcher, silently.

What counts is what is seen: an mpirun that has started more ranks here than the launcher has slots, and for which ssh
went to no worker at all. Then nothing can be said against scripts, single ranks or launchers that use no mpirun.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.bootstrap import hostfile
from mpiboot.bootstrap.runtime import LAUNCHERS
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mpiboot.bootstrap.hostfile import Entry

_MPIRUNS = frozenset(LAUNCHERS)
_SEEN_FOR = 0.4
_COUNTS = frozenset({"-n", "-np", "-c", "--n", "--np"})
_HOSTS = frozenset({"-H", "-host", "--host", "-hosts", "--hosts"})
_FILES = frozenset({"-hostfile", "--hostfile", "-machinefile", "--machinefile", "-f"})
_QUESTIONS = frozenset({"--version", "-V", "-version", "--help", "-h", "-help", "-info"})


class Slots(NamedTuple):
    """What the hostfile offers."""

    own: int
    elsewhere: int
    workers: tuple[str, ...]

    @property
    def allowed_here(self) -> int:
        return max(1, self.own)


class Seen(NamedTuple):
    """A running mpirun: its arguments, and how many ranks it has started here."""

    pid: int
    argv: tuple[str, ...]
    ranks_here: int


class Placement:
    """Remembers since when an mpirun looks misplaced: its ssh may just not have started yet."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._contacts = 0
        self._before: dict[int, int] = {}  # mpirun -> how often workers had been contacted when it was not there yet
        self._since: dict[int, float] = {}

    def judge(self, seen: Iterable[Seen], contacts: int, now: float) -> str:
        """What is wrong, once it has been so for a moment; empty if nothing is. `contacts` counts all so far."""
        wrong = ""
        for mpirun in seen:
            before = self._before.setdefault(mpirun.pid, self._contacts)
            misplaced = contacts == before and mpirun.ranks_here > self._slots.allowed_here
            if not misplaced or on_purpose(mpirun.argv, self._slots.workers):
                self._since.pop(mpirun.pid, None)
            elif now - self._since.setdefault(mpirun.pid, now) >= _SEEN_FOR:
                wrong = wrong or report(mpirun.ranks_here, self._slots)
        self._contacts = contacts
        return wrong


def at_the_end(argv: Sequence[str], slots: Slots, contacts: int, code: int, *, hydra: bool) -> str:
    """The same question about a command that was too quick to be seen; only an mpirun itself can be judged then."""
    name = argv[0].rpartition("/")[2]
    if code != 0 or contacts or not slots.elsewhere or name not in _MPIRUNS or _QUESTIONS & set(argv):
        return ""
    wanted = ranks_asked_for(argv)
    if wanted is None:
        wanted = 1 if hydra else slots.own + slots.elsewhere
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
        if hostfile.is_own(entry.name, hostname):
            own += entry.slots
        else:
            elsewhere += entry.slots
            workers.append(entry.name)
    return Slots(own, elsewhere, tuple(workers))


def ranks_asked_for(argv: Sequence[str]) -> int | None:
    """The sum of the -n of an mpirun's command line; None if it has none."""
    counts = [int(value) for value in _values(argv, _COUNTS) if value.isdecimal()]
    return sum(counts) if counts else None


def on_purpose(argv: Sequence[str], workers: Sequence[str]) -> bool:
    """Whether the command line itself says where to run, and names no worker."""
    named = [name.partition(":")[0] for value in _values(argv, _HOSTS) for name in value.split(",")]
    for path in _values(argv, _FILES):
        with suppress(OSError, UserError), open(path, encoding="utf-8", errors="replace") as file:
            named += [entry.name for entry in hostfile.parse(file.read(), path)]
    if {"fork", "isolated"} & set(argv):
        return True
    known = set(workers) | {worker.partition(".")[0] for worker in workers}
    return bool(named) and not known & set(named)


def _values(argv: Sequence[str], flags: frozenset[str]) -> list[str]:
    """What follows these flags. Once for each program of `mpirun A : B`, for what comes later may be the program's."""
    found, open_for_one = list[str](), True
    for word, following in zip(argv, [*argv[1:], ""], strict=True):
        flag, equals, value = word.partition("=")
        if word == ":":
            open_for_one = True
        elif open_for_one and flag in flags:
            found.append(value if equals else following)
            open_for_one = False
    return found
