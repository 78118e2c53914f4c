"""Hostfiles in the dialects of all MPIs: read any, write the one that is asked for. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable

# openmpi: "NAME slots=N". hydra: "NAME:N", for MPICH and Intel MPI.
Dialect = Literal["openmpi", "hydra"]


class HostfileError(UserError):
    """A line of the hostfile is not one."""


class Entry(NamedTuple):
    """A host and how many ranks it takes."""

    name: str
    slots: int


def parse(text: str, source: str) -> tuple[Entry, ...]:
    """The hosts in the order of the file. A name that stands there twice has the slots of both lines."""
    slots: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if words:
            entry = _entry(words, f"{source}:{number}")
            slots[entry.name] = slots.get(entry.name, 0) + entry.slots
    return tuple(Entry(name, count) for name, count in slots.items())


def render(entries: Iterable[Entry], dialect: Dialect) -> str:
    """The text of the file, one line a host."""
    if dialect == "hydra":
        return "".join(f"{_bracketed(entry.name)}:{entry.slots}\n" for entry in entries)
    return "".join(f"{entry.name} slots={entry.slots}\n" for entry in entries)


def with_own_name(entries: Iterable[Entry], hostname: str) -> tuple[Entry, ...]:
    """The entries, with the launcher's own line under the name that it has itself.

    Every MPI starts ranks on a host it recognizes as its own directly, but recognizes only the exact name: under its
    long name they would ssh to the launcher, where nothing listens.
    """
    return tuple(entry._replace(name=hostname) if is_own(entry.name, hostname) else entry for entry in entries)


def is_own(name: str, hostname: str) -> bool:
    """Whether a hostfile's name means this very host."""
    if name == hostname or name == "localhost":
        return True
    first = name.partition(".")[0]
    return not first.isdigit() and ":" not in name and first == hostname.partition(".")[0]


def _entry(words: list[str], where: str) -> Entry:
    name, slots = _name_and_count(words[0].rpartition("@")[2], where)
    for word in words[1:]:
        key, equals, value = word.partition("=")
        if key.lower() in ("slots", "cpus", "count") and equals:
            slots = _count(value, where)
    return Entry(name, 1 if slots is None else slots)


def _name_and_count(word: str, where: str) -> tuple[str, int | None]:
    if word.startswith("["):  # an IPv6 address, maybe with a count
        name, _, rest = word[1:].partition("]")
        return name, _count(rest[1:], where) if rest.startswith(":") else None
    name, colon, count = word.partition(":")
    if colon and ":" not in count:
        return _checked(name, where), _count(count, where)
    return _checked(word, where), None


def _checked(name: str, where: str) -> str:
    # Names go into an ssh configuration and become file names.
    if not name or name.startswith("-") or not all(c.isalnum() or c in "._-:" for c in name):
        raise HostfileError(f"{where}: {name!r} is not a host name")
    return name


def _count(text: str, where: str) -> int:
    if not text.isdecimal():
        raise HostfileError(f"{where}: slots must be a whole number, is {text!r}")
    return int(text)


def _bracketed(name: str) -> str:
    return f"[{name}]" if ":" in name else name
