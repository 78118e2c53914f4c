"""Hostfiles: reads the forms of all MPIs, and writes each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.bootstrap.files import read_text
from mpiboot.bootstrap.hosts import Entry, is_name, is_own
from mpiboot.job import mpi
from mpiboot.job.errors import UserError
from mpiboot.job.values import natural

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mpiboot.job.mpi import HostfileForm

# Other keywords for the number of ranks.
COUNT_KEYS = frozenset({"cpus", "count"})
_SHOWN = 60  # characters of a word that is wrong


def read(path: str, *, optional: bool) -> tuple[Entry, ...]:
    """The hosts of a hostfile. `optional`: without the file there are no hosts, and so no workers to wait for."""
    try:
        return parse(read_text(path), path)
    except FileNotFoundError:
        if optional:
            return ()
        raise UserError(f"the hostfile {path} does not exist; set MPIBOOT_HOSTFILE or --hostfile") from None
    except OSError as error:
        raise UserError(f"cannot read the hostfile {path}: {error.strerror}") from error


def parse(text: str, source: str) -> tuple[Entry, ...]:
    """The hosts in the order of the file. A name on two lines has the slots of both."""
    slots: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if words:
            entry = _entry(words, f"{source}:{number}")
            slots[entry.name] = slots.get(entry.name, 0) + entry.slots
    return tuple(Entry(name, count) for name, count in slots.items())


def render(entries: Iterable[Entry], form: HostfileForm) -> str:
    """The text of the file, one line a host."""
    return "".join(form.line(entry.name, entry.slots) for entry in entries)


def with_own_name(entries: Iterable[Entry], hostname: str) -> tuple[Entry, ...]:
    """The entries, with the launcher's own line under its host name.

    Every MPI starts ranks on a host it recognizes as its own directly, but recognizes only the exact name: under its
    long name they would ssh to the launcher, where nothing listens.
    """
    return tuple(entry._replace(name=hostname) if is_own(entry.name, hostname) else entry for entry in entries)


def _entry(words: list[str], where: str) -> Entry:
    name, slots = _name_and_count(words[0].rpartition("@")[2], where)
    keys = COUNT_KEYS | {form.key for form in mpi.hostfile_forms()}
    for word in words[1:]:
        key, equals, value = word.partition("=")
        if key.lower() in keys and equals:
            slots = _count(value, where)
    return Entry(name, 1 if slots is None else slots)


def _name_and_count(word: str, where: str) -> tuple[str, int | None]:
    if word.startswith("["):  # an IPv6 address, maybe with a count
        name, bracket, rest = word[1:].partition("]")
        if bracket and (not rest or rest.startswith(":")):
            return _checked(name, where), _count(rest[1:], where) if rest else None
    name, colon, count = word.partition(":")
    if colon and ":" not in count:
        return _checked(name, where), _count(count, where)
    return _checked(word, where), None


def _checked(name: str, where: str) -> str:
    if not is_name(name):
        raise UserError(f"{where}: {_shown(name)} is not a host name")
    return name


def _count(text: str, where: str) -> int:
    count = natural(text)
    if count is None:
        raise UserError(f"{where}: slots must be a whole number, is {_shown(text)}")
    return count


def _shown(text: str) -> str:
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."
