"""The file of addresses: lines 'NAME ADDRESS [PORT [USER]]', rewritten by whoever knows them, read when it changed."""

from __future__ import annotations

import os
from socket import AF_INET, AF_INET6, inet_pton
from typing import NamedTuple


class Place(NamedTuple):
    """Where a worker can be reached. Port or user are None where nobody said."""

    address: str
    port: int | None = None
    user: str | None = None


class AddressFile:
    """Remembers what it saw of the file, so that a look at an unchanged file costs one system call."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self.problems: tuple[str, ...] = ()

    def changed(self) -> dict[str, Place] | None:
        """The places by name if the file is not as it was at the last call, else None.

        A file that is gone is no news: who rewrites it may have to take it away first.
        """
        try:
            found = os.stat(self._path)
            mark = (found.st_mtime_ns, found.st_ino, found.st_size)
            if mark == self._seen:
                return None
            with open(self._path, encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError:
            return None
        self._seen = mark
        places, problems = parse(text)
        self.problems = tuple(f"{self._path}:{problem}" for problem in problems)
        return places


def parse(text: str) -> tuple[dict[str, Place], list[str]]:
    """The places by name, and what is wrong with the lines that had to be left out."""
    places: dict[str, Place] = {}
    problems: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            places[words[0]] = _place(words[1:])
        except ValueError as error:
            problems.append(f"{number}: {error}")
    return places, problems


def is_address(text: str) -> bool:
    try:
        inet_pton(AF_INET6 if ":" in text else AF_INET, text)
    except (OSError, ValueError):
        return False
    return True


def _place(words: list[str]) -> Place:
    if not 1 <= len(words) <= 3:
        raise ValueError("must be: NAME ADDRESS [PORT [USER]]")
    if not is_address(words[0]):
        raise ValueError(f"{words[0]!r} is not an IP address")
    if len(words) > 1 and not (words[1].isdecimal() and 1 <= int(words[1]) <= 65535):
        raise ValueError(f"{words[1]!r} is not a port")
    return Place(words[0], int(words[1]) if len(words) > 1 else None, words[2] if len(words) > 2 else None)
