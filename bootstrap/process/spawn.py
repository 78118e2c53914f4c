"""Starts programs, always from an argument list. Errors have the exit codes of shells: 126 and 127."""

from __future__ import annotations

import errno
import os
import select
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.bootstrap.process import reaper
from mpiboot.bootstrap.process.signals import ENDING, EndedBySignalError
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpiboot.bootstrap.process.signals import Signals

# Python ignores the first two signals. The launcher ignores the last two while its command has the terminal.
_BACK_TO_DEFAULT = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTTOU, signal.SIGTTIN)


MOST = 1024 * 1024  # bytes of a program's output that are kept


class NotFoundError(UserError):
    """The program does not exist."""

    exit_code = 127


class NotExecutableError(UserError):
    """The program exists but cannot be executed."""

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
    """Start the program and return its pid. Raises `NotFoundError` or `NotExecutableError`."""
    program = find(argv[0], environment.get("PATH", os.defpath))
    wanted = ((stdin, 0), (stdout, 1), (stderr, 2))
    actions = [(os.POSIX_SPAWN_DUP2, have, want) for have, want in wanted if have is not None]
    words = [os.fsencode(word) for word in argv]

    def start(file: str, words: list[bytes]) -> int:
        if own_group:
            return os.posix_spawn(
                file, words, environment, file_actions=actions, setsigdef=_BACK_TO_DEFAULT, setsigmask=(), setpgroup=0
            )
        return os.posix_spawn(file, words, environment, file_actions=actions, setsigdef=_BACK_TO_DEFAULT, setsigmask=())

    try:
        try:
            return start(program, words)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            # A script without a #! line: shells run it themselves.
            return start("/bin/sh", [b"/bin/sh", os.fsencode(program), *words[1:]])
    except FileNotFoundError as error:
        raise NotFoundError(_missing(program)) from error
    except OSError as error:
        raise NotExecutableError(f"{program}: cannot be executed: {error.strerror}") from error
    except ValueError as error:  # a null character
        raise NotExecutableError(f"{program}: cannot be executed: {error}") from error


class Output:
    """Starts a short program and reads its output later. The reaper collects the process."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        readable, writable = os.pipe()
        try:
            spawn(argv, environment, stdout=writable, stderr=writable)
        except UserError:
            pass  # no program, no output
        finally:
            os.close(writable)
        self._readable = readable

    def text(self, within: float = 5.0) -> str:
        """The whole output, or the part that came within this many seconds."""
        return drained(self._readable, within)


def drained(readable: int, within: float) -> str:
    """Read a pipe to its end, for at most `within` seconds and MOST bytes. Closes the pipe."""
    ends, parts, size, ended = time.monotonic() + within, list[bytes](), 0, False
    poll = select.poll()
    poll.register(readable, select.POLLIN)
    while not ended and size <= MOST and poll.poll(max(0.0, ends - time.monotonic()) * 1000):
        data = os.read(readable, 65536)
        parts.append(data)
        size, ended = size + len(data), not data
    os.close(readable)
    return b"".join(parts).decode("utf-8", "replace")


class Finished(NamedTuple):
    """A program's output and exit code. If mpiboot ended the program, the code is None and `why` is the reason."""

    text: str
    code: int | None
    why: str = ""


def finished(
    argv: Sequence[str], environment: Mapping[str, str], signals: Signals, within: float, doing: str
) -> Finished:
    """Run a program to its end, for at most `within` seconds. It writes to the launcher's stderr.

    Raises EndedBySignalError as soon as a signal should end the launcher; `doing` is for its text.
    """
    readable, writable = os.pipe2(os.O_CLOEXEC)
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        pid = spawn(argv, environment, own_group=True, stdin=null, stdout=writable)
    except UserError:
        os.close(readable)
        raise
    finally:
        os.close(writable)
        os.close(null)
    deadline, parts, size = time.monotonic() + within, list[bytes](), 0
    poll = select.poll()
    poll.register(readable, select.POLLIN)
    poll.register(signals, select.POLLIN)
    code, closed, why = None, False, ""
    try:
        while (code is None or not closed) and not why:
            for descriptor, _ in poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                if descriptor == readable:
                    data = os.read(readable, 65536)
                    parts.append(data)
                    size += len(data)
                    if not data:
                        closed = True
                        poll.unregister(readable)
                elif number := next((number for number in signals.take() if number in ENDING), 0):
                    raise EndedBySignalError(number, doing)
            code = next((e.code for e in reaper.reap() if e.pid == pid and isinstance(e, reaper.Ended)), code)
            if size > MOST:
                why = f"printed more than {MOST >> 20} MiB"
            elif time.monotonic() >= deadline:
                why = f"did not end within {within:g} s"
    finally:
        os.close(readable)
        if code is None or not closed:
            _end_group(pid, gone=code is not None)
    return Finished(b"".join(parts).decode("utf-8", "replace"), None if why else code, why)


def _end_group(pid: int, *, gone: bool) -> None:
    """End a program that leads a process group, and all processes of the group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    if not gone:
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)


def _missing(program: str) -> str:
    if not os.path.lexists(program):
        return f"{program}: no such file"
    # The kernel reports "no such file" for a missing interpreter as well.
    return f"{program}: its interpreter (the #! line, or its dynamic loader) does not exist"
