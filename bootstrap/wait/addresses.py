"""The address file: lines 'NAME ADDRESS [PORT [USER]]'. Engines and the kubelet rewrite it while the launcher reads."""

from __future__ import annotations

import errno
import os

from mpiboot.bootstrap.files import read_text
from mpiboot.bootstrap.hosts import Endpoint, is_address, is_name, is_user
from mpiboot.job.values import natural


class AddressFile:
    """Checks the file for changes. A check of an unchanged file costs one system call."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._last_read: tuple[int, int, int] | None = None
        self._unreadable_for = ""
        self.problems: tuple[str, ...] = ()  # of the last check; the loop logs and empties them

    def changed(self) -> dict[str, Endpoint] | None:
        """The endpoints by name if the file has changed since the last call, else None.

        A file that is gone is no news: who rewrites it may have to take it away first.
        """
        try:
            status = os.stat(self._path)
            mark = (status.st_mtime_ns, status.st_ino, status.st_size)
            if mark == self._last_read:
                return None
            text = read_text(self._path)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.EFBIG:
                self._last_read = mark
            self._unreadable(error)
            return None
        self._last_read, self._unreadable_for = mark, ""
        endpoints, problems = parse(text)
        self.problems = tuple(f"ignored: {self._path}:{problem}" for problem in problems)
        return endpoints

    def _unreadable(self, error: OSError) -> None:
        """Report the problem once. A later check may succeed."""
        problem = f"cannot read the addresses: {self._path}: {error.strerror}"
        if problem != self._unreadable_for:
            self._unreadable_for, self.problems = problem, (problem,)


def parse(text: str) -> tuple[dict[str, Endpoint], list[str]]:
    """The endpoints by name, and a message for each line that is left out."""
    endpoints: dict[str, Endpoint] = {}
    problems: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            if not is_name(words[0]):
                raise ValueError(f"{words[0][:60]!r} is not a host name")
            endpoints[words[0]] = _endpoint(words[1:])
        except ValueError as error:
            problems.append(f"{number}: {error}")
    return endpoints, problems


def _endpoint(words: list[str]) -> Endpoint:
    if not 1 <= len(words) <= 3:
        raise ValueError("must be: NAME ADDRESS [PORT [USER]]")
    if not is_address(words[0]):
        raise ValueError(f"{words[0][:60]!r} is not an IP address")
    port = natural(words[1]) if len(words) > 1 else None
    if len(words) > 1 and not 1 <= (port or 0) <= 65535:
        raise ValueError(f"{words[1][:60]!r} is not a port")
    user = words[2] if len(words) > 2 else None
    if user is not None and not is_user(user):
        raise ValueError(f"{user[:60]!r} is not a user's name")
    return Endpoint(words[0], port, user)
