"""Waits for the working directory, and unpacks it here and on every worker before the first rank."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.bootstrap import exit_codes
from mpiboot.bootstrap.process import reaper, spawn
from mpiboot.bootstrap.process.signals import ENDING, EndedBySignalError
from mpiboot.bootstrap.workdir import archive, program
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mpiboot.bootstrap.process.signals import Signals

AT_ONCE = 16  # transfers; more would only share the launcher's network
LOOK_EVERY = 0.05  # seconds
TOLD_AFTER = 3.0
NAMED = 3  # hosts whose trouble is named


class NeverCameError(UserError):
    """The directory did not come in time."""

    exit_code = exit_codes.OUT_OF_TIME


class NotHandedOnError(UserError):
    """A host could not take the directory."""

    exit_code = exit_codes.NO_DATA


class Expected(NamedTuple):
    """The directory that comes, and how many seconds may pass without a byte of it."""

    directory: str
    patience: float


def bring(
    expected: Expected, hosts: Sequence[str], ssh_config: str, environ: Mapping[str, str], signals: Signals,
    log: Callable[[str], None],
) -> None:  # fmt: skip
    """Return when the directory is on this host and on all others."""
    path = program.place(environ)
    _wait(path, expected, signals, log)
    began, size = time.monotonic(), os.path.getsize(path)
    unpack = ["workdir", "unpack", expected.directory]
    isolated = ["-I"] if sys.flags.isolated else []
    commands = {"launcher": [sys.executable, *isolated, "-m", "mpiboot", *unpack]}
    commands |= {host: ["ssh", "-F", ssh_config, host, _quoted(["mpiboot", *unpack])] for host in hosts}
    troubles = _run_all(commands, path, environ, signals)
    with suppress(OSError):
        os.unlink(path)
    if troubles:
        more = f"; and {len(troubles) - NAMED} more" if len(troubles) > NAMED else ""
        named = "; ".join(f"{host}: {why}" for host, why in list(troubles.items())[:NAMED])
        raise NotHandedOnError(f"the working directory is not complete: {named}{more}")
    if (seconds := time.monotonic() - began) > 1:
        log(f"the working directory ({size / 1e6:.1f} MB packed) is on {len(commands)} hosts after {seconds:.1f} s")


def _wait(path: str, expected: Expected, signals: Signals, log: Callable[[str], None]) -> None:
    """Return when the archive is there. Bytes that come prolong the wait."""
    came, last = 0, time.monotonic()
    tell_at = last + TOLD_AFTER
    while not os.path.exists(path):
        _end_if_told(signals, "waiting for the working directory")
        reaper.reap()  # orphans, as process 1 must
        now, size = time.monotonic(), archive.growing(path)
        if size != came:
            came, last = size, now
        if now >= tell_at:
            log("waiting for the working directory, which `mpiboot run` sends")
            tell_at = float("inf")
        if now - last >= expected.patience:
            raise NeverCameError(
                f"the working directory for {expected.directory} did not come: no byte of it for "
                f"{expected.patience:g} s; `mpiboot run`, which sends it, has ended or does not reach this pod"
            )
        signals.wait(LOOK_EVERY)


def _run_all(
    commands: Mapping[str, Sequence[str]], path: str, environ: Mapping[str, str], signals: Signals
) -> dict[str, str]:
    """Run the commands, each with the archive as its stdin. Returns what went wrong, by host."""
    waiting, running, troubles = list(commands.items()), dict[int, tuple[str, int]](), dict[str, str]()
    try:
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                host, argv = waiting.pop(0)
                pid, errors = _started(argv, path, environ)
                running[pid] = (host, errors)
            for event in reaper.reap():
                if isinstance(event, reaper.Ended) and event.pid in running:
                    host, errors = running.pop(event.pid)
                    text = spawn.drained(errors, 1.0)
                    if event.code:
                        troubles[host] = _last_line(text) or f"exit code {event.code}"
            _end_if_told(signals, "handing on the working directory")
            signals.wait(LOOK_EVERY)
    finally:
        for pid, (_, errors) in running.items():
            reaper.send(pid, 9)
            os.close(errors)
    return troubles


def _started(argv: Sequence[str], path: str, environ: Mapping[str, str]) -> tuple[int, int]:
    """The pid, and a pipe with what the program prints. Few lines: the pipe holds them until they are read."""
    readable, writable = os.pipe2(os.O_CLOEXEC)
    given = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return spawn.spawn(argv, environ, stdin=given, stdout=writable, stderr=writable), readable
    except UserError:
        os.close(readable)
        raise
    finally:
        os.close(given)
        os.close(writable)


def _end_if_told(signals: Signals, doing: str) -> None:
    number = next((number for number in signals.take() if number in ENDING), 0)
    if number:
        raise EndedBySignalError(number, doing)


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _quoted(words: Iterable[str]) -> str:
    """The words for the shell of a login. By hand: shlex takes 3 ms to import."""
    return " ".join("'" + word.replace("'", "'\"'\"'") + "'" for word in words)
