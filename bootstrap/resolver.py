"""Names become addresses, as this machine's own rules (/etc/hosts, DNS) say."""

from __future__ import annotations

import socket
from functools import partial
from typing import NamedTuple

from mpiboot.bootstrap import names
from mpiboot.bootstrap.beside import Beside


class Answer(NamedTuple):
    """An address, or the reason why there is none."""

    name: str
    address: str
    error: str = ""


class Resolver:
    """Look-ups in parallel. `fileno()` is readable when `answers()` has some."""

    def __init__(self) -> None:
        self._beside: Beside[Answer] = Beside("DNS", 16)
        self._search: tuple[str, ...] | None = None

    def fileno(self) -> int:
        return self._beside.fileno()

    def ask(self, name: str) -> None:
        if self._search is None:
            self._search = search_list()
        self._beside.submit(partial(look_up, name, self._search))

    def answers(self) -> list[Answer]:
        return self._beside.results()


def look_up(name: str, search: tuple[str, ...]) -> Answer:
    """Ask under each name in turn. IPv4 first: sshd and every MPI speak it, IPv6 not always."""
    error = ""
    for question in names.questions(name, search):
        try:
            found = socket.getaddrinfo(question, None, 0, socket.SOCK_STREAM)
        except (OSError, UnicodeError) as problem:
            error = getattr(problem, "strerror", None) or str(problem)
            continue
        families = sorted(found, key=lambda item: item[0] != socket.AF_INET)
        return Answer(name, str(families[0][4][0]))
    return Answer(name, "", error)


def search_list() -> tuple[str, ...]:
    """This machine's search domains."""
    return names.search_list(_resolv_conf())


def _resolv_conf() -> str:
    try:
        with open("/etc/resolv.conf", encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
