"""Host names become addresses, by the rules of this machine: /etc/hosts and DNS."""

from __future__ import annotations

import socket
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.bootstrap.files import read_text
from mpiboot.bootstrap.wait.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Sequence


def questions(name: str, search: Sequence[str]) -> tuple[str, ...]:
    """The names to resolve, in order, until one has an address.

    A name with dots is asked as an absolute one first: a resolver with `ndots:5` would try it under each search domain
    before, and each of those "no such name" answers is kept by caches on the way. The names of a cluster's services
    end in `.svc`, or before it, where the search list knows the rest.
    """
    if name.endswith("."):
        return (name,)
    if "." not in name:
        return (name,)
    cluster = next((domain.rstrip(".") for domain in search if domain.startswith("svc.")), "")
    longer: tuple[str, ...] = ()
    if cluster and name.endswith(".svc"):
        longer = (f"{name}.{cluster.removeprefix('svc.')}.",)
    elif cluster and not name.endswith(f".{cluster}"):
        longer = (f"{name}.{cluster}.",)
    return (*longer, f"{name}.", name)


def parse_search_list(resolv_conf: str) -> tuple[str, ...]:
    """The search domains of a resolv.conf. Its last such line counts."""
    domains: tuple[str, ...] = ()
    for line in resolv_conf.splitlines():
        words = line.split()
        if words and words[0] in ("search", "domain"):
            domains = tuple(words[1:])
    return domains


class Answer(NamedTuple):
    """An address, or the reason why there is none."""

    name: str
    address: str
    error: str = ""


class Resolver:
    """Resolves names in threads. `fileno()` is readable when `answers()` has results."""

    def __init__(self) -> None:
        self._threads: Threads[Answer] = Threads("DNS", 16)
        self._search: tuple[str, ...] | None = None

    def fileno(self) -> int:
        return self._threads.fileno()

    def ask(self, name: str) -> None:
        if self._search is None:
            self._search = search_list()
        self._threads.submit(partial(look_up, name, self._search))

    def answers(self) -> list[Answer]:
        return self._threads.results()


def look_up(name: str, search: tuple[str, ...]) -> Answer:
    """Resolve the names in turn. IPv4 comes first: every sshd and MPI supports it, IPv6 not always."""
    error = ""
    for question in questions(name, search):
        try:
            addresses = socket.getaddrinfo(question, None, 0, socket.SOCK_STREAM)
        except (OSError, UnicodeError) as problem:
            error = getattr(problem, "strerror", None) or str(problem)
            continue
        families = sorted(addresses, key=lambda item: item[0] != socket.AF_INET)
        return Answer(name, str(families[0][4][0]))
    return Answer(name, "", error)


def search_list() -> tuple[str, ...]:
    """The search domains of this machine."""
    return parse_search_list(_resolv_conf())


def _resolv_conf() -> str:
    try:
        return read_text("/etc/resolv.conf")
    except OSError:
        return ""
