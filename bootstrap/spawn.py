"""Starting programs, always from an argument list; a program that cannot be run says so as a shell does."""

from __future__ import annotations

import errno
import os
import select
import signal
import time
from typing import TYPE_CHECKING

from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Python ignores the first two; we ignore the last two while a program of ours has the terminal.
_BACK_TO_DEFAULT = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTTOU, signal.SIGTTIN)


class NotFoundError(UserError):
    """No such program."""

    exit_code = 127


class NotExecutableError(UserError):
    """The program is there and cannot be executed."""

    exit_code = 126


def find(name: str, path: str) -> str:
    """The file that a shell would run for `name`, looked up in `path` (directories separated by colons)."""
    if "/" in name:
        return name
    refused = ""
    for directory in path.split(":"):
        file = f"{directory or '.'}/{name}"
        if os.path.isfile(file):
            if os.access(file, os.X_OK):
                return file
            refused = refused or file
    if refused:
        raise NotExecutableError(f"{refused}: permission denied; make it executable: chmod +x {refused}")
    raise NotFoundError(f"{name}: command not found in PATH={path}")


def spawn(
    argv: Sequence[str],
    environment: Mapping[str, str],
    *,
    own_group: bool = False,
    stdin: int | None = None,
    stdout: int | None = None,
    stderr: int | None = None,
) -> int:
    """The pid of the running program. Raises `NotFoundError` or `NotExecutableError`, as a shell exits 127 or 126."""
    program = find(argv[0], environment.get("PATH", os.defpath))
    wanted = ((stdin, 0), (stdout, 1), (stderr, 2))
    actions = [(os.POSIX_SPAWN_DUP2, have, want) for have, want in wanted if have is not None]
    words = [os.fsencode(word) for word in argv]

    def start(file: str, words: list[bytes]) -> int:
        if own_group:
            return os.posix_spawn(
                file, words, environment, file_actions=actions, setsigdef=_BACK_TO_DEFAULT, setsigmask=(), setpgroup=0
            )
        return os.posix_spawn(
            file, words, environment, file_actions=actions, setsigdef=_BACK_TO_DEFAULT, setsigmask=()
        )

    try:
        try:
            return start(program, words)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            # A script without its first line: shells run it themselves.
            return start("/bin/sh", [b"/bin/sh", os.fsencode(program), *words[1:]])
    except FileNotFoundError as error:
        raise NotFoundError(_missing(program)) from error
    except OSError as error:
        raise NotExecutableError(f"{program}: cannot be executed: {error.strerror}") from error
    except ValueError as error:  # a null character
        raise NotExecutableError(f"{program}: cannot be executed: {error}") from error


class Output:
    """A quick program that runs meanwhile, and what it prints; collecting it is left to whoever reaps."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        readable, writable = os.pipe()
        try:
            spawn(argv, environment, stdout=writable, stderr=writable)
        except UserError:
            pass  # it prints nothing
        finally:
            os.close(writable)
        self._readable = readable

    def text(self, within: float = 5.0) -> str:
        """All of it, or what came within that many seconds."""
        return drained(self._readable, within)[0]


def drained(readable: int, within: float) -> tuple[str, bool]:
    """All that is written into a pipe, and whether that was all within so many seconds. Closes it."""
    ends, parts, ended = time.monotonic() + within, list[bytes](), False
    poll = select.poll()
    poll.register(readable, select.POLLIN)
    while not ended and poll.poll(max(0.0, ends - time.monotonic()) * 1000):
        data = os.read(readable, 65536)
        parts.append(data)
        ended = not data
    os.close(readable)
    return b"".join(parts).decode("utf-8", "replace"), ended


def _missing(program: str) -> str:
    if not os.path.lexists(program):
        return f"{program}: no such file"
    # The kernel says "no such file" of an interpreter that is missing, too.
    return f"{program}: its interpreter (the #! line, or its dynamic loader) does not exist"
