"""Runs a program on this host and on workers, each with a file as its stdin or stdout."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.bootstrap.process import reaper, spawn
from mpiboot.bootstrap.process.signals import ENDING, EndedBySignalError
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mpiboot.bootstrap.process.signals import Signals

AT_ONCE = 16  # transfers; more would only share the launcher's network
LOOK_EVERY = 0.05  # seconds
LAUNCHER = "launcher"


class Work(NamedTuple):
    """A command, and the files that it reads and writes."""

    argv: Sequence[str]
    stdin: str = os.devnull
    stdout: str = os.devnull


def here(*words: str) -> list[str]:
    """The command line of `mpiboot workdir` on this host."""
    return [sys.executable, *(["-I"] if sys.flags.isolated else []), "-m", "mpiboot", "workdir", *words]


def on_worker(host: str, ssh_config: str, *words: str) -> list[str]:
    """The command line of `mpiboot workdir` on a worker."""
    return ["ssh", "-F", ssh_config, host, _quoted(["mpiboot", "workdir", *words])]


def run_all(work: Mapping[str, Work], environ: Mapping[str, str], signals: Signals, doing: str) -> dict[str, str]:
    """Do all of it. Returns what went wrong, by host. Raises EndedBySignalError if a signal should end the launcher."""
    waiting, running, troubles = list(work.items()), dict[int, tuple[str, int]](), dict[str, str]()
    try:
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                host, each = waiting.pop(0)
                pid, errors = _started(each, environ)
                running[pid] = (host, errors)
            for event in reaper.reap():
                if isinstance(event, reaper.Ended) and event.pid in running:
                    host, errors = running.pop(event.pid)
                    text = spawn.drained(errors, 1.0)
                    if event.code:
                        troubles[host] = _last_line(text) or f"exit code {event.code}"
            end_if_asked(signals, doing)
            signals.wait(LOOK_EVERY)
    finally:
        for pid, (_, errors) in running.items():
            reaper.send(pid, 9)
            os.close(errors)
    return troubles


def end_if_asked(signals: Signals, doing: str) -> None:
    """Raise EndedBySignalError if a signal came that should end the launcher."""
    number = next((number for number in signals.take() if number in ENDING), 0)
    if number:
        raise EndedBySignalError(number, doing)


def _started(work: Work, environ: Mapping[str, str]) -> tuple[int, int]:
    """The pid, and a pipe with what the program writes to stderr. It has few lines: the pipe holds them."""
    readable, writable = os.pipe2(os.O_CLOEXEC)
    opened = [writable]
    try:
        given = os.open(work.stdin, os.O_RDONLY | os.O_CLOEXEC)
        opened.append(given)
        taken = os.open(work.stdout, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        opened.append(taken)
        return spawn.spawn(work.argv, environ, stdin=given, stdout=taken, stderr=writable), readable
    except (UserError, OSError):
        os.close(readable)
        raise
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _quoted(words: Iterable[str]) -> str:
    """The words for the shell of a login. By hand: shlex takes 3 ms to import."""
    return " ".join("'" + word.replace("'", "'\"'\"'") + "'" for word in words)
