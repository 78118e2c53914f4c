"""What is asked of an elastic job before its command starts: numbers that can be, a discovery script that works."""

# What horovodrun makes of a bad script is a trace in a thread, and a job that waits for ever.
from __future__ import annotations

import os
import signal
from shlex import quote
from typing import TYPE_CHECKING

from mpiboot.bootstrap import reaper, spawn
from mpiboot.job.elastic import DISCOVERY
from mpiboot.job.elastic_faults import faults, too_few
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mpiboot.bootstrap.hostfile import Entry
    from mpiboot.job.elastic import Elastic

ANSWERS_WITHIN = 30.0
MISSING = 3


class DiscoveryError(UserError):
    """The job's discovery script does not do what it is for."""


def demand_possible(size: Elastic, entries: Sequence[Entry], log: Callable[[str], None]) -> None:
    """Refuse numbers that no number of workers mends; say what a job waits for that has to grow first."""
    slots = entries[0].slots if entries else 1
    problems = list(faults(size, slots))
    if problems:
        raise UserError("; ".join(problems))
    lacking = too_few(size, len(entries), slots) if entries else ""
    if lacking:
        log(f"{lacking}; waiting for it to grow (kubectl patch, mpiboot scale)")


def check(command: Sequence[str], environ: Mapping[str, str]) -> None:
    """Run the script once, as the command will."""
    script = named(command)
    if script:
        problem = _try(script, environ)
        if problem:
            raise DiscoveryError(f"the discovery script {script} {problem}")


def demand_horovod(command: Sequence[str], host: str, ssh_config: str, environ: Mapping[str, str]) -> None:
    """Ask one worker, which stands for all, whether it can run what it will be told to run; with the launcher's PATH,
    as horovodrun hands that on. A worker that cannot be asked is left to horovodrun.
    """
    path = environ.get("PATH", "")
    question = f"PATH={quote(path)}; command -v {quote(command[0])} >/dev/null || exit {MISSING}"
    words = ["ssh", "-F", ssh_config, "-o", "ConnectTimeout=5", "-o", "ConnectionAttempts=1", host, question]
    if _run(words, environ)[1] == MISSING:
        raise DiscoveryError(
            f"{host} has no {command[0]} (PATH={path}), so its image lacks Horovod; give workers the launcher's image"
        )


def named(command: Sequence[str]) -> str:
    """The script of a command line; empty if none, or in a shell's words only: those may make it first."""
    for word, following in zip(command, [*command[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name == DISCOVERY:
            return value if equals else following
    return ""


def fault(text: str, code: int) -> str:
    """What is wrong with an answer; empty if it lists hosts."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if code:
        return f"failed with exit code {code}"
    if not lines:
        return "printed nothing, though workers are ready; it must print HOST or HOST:SLOTS for each"
    for number, line in enumerate(lines, 1):
        host, colon, slots = line.partition(":")
        if not host or len(line.split()) != 1 or not all(c.isalnum() or c in "._-" for c in host):
            return f"printed {line[:60]!r} in line {number}, which is not HOST or HOST:SLOTS"
        if colon and not (slots.isdecimal() and int(slots) > 0):
            return f"printed {line[:60]!r} in line {number}: slots must be a number from 1 up"
    return ""


def _try(script: str, environ: Mapping[str, str]) -> str:
    """What is wrong with it. Run as horovodrun does: its words are a shell's, and its complaints go to our stderr."""
    text, code = _run(["/bin/sh", "-c", script], environ)
    return f"did not end within {ANSWERS_WITHIN:g} s" if code is None else fault(text, code)


def _run(words: Sequence[str], environ: Mapping[str, str]) -> tuple[str, int | None]:
    """What it printed, and its exit code; None: it took too long."""
    readable, writable = os.pipe()
    try:
        pid = spawn.spawn(words, environ, stdout=writable)
    finally:
        os.close(writable)
    text, ended = spawn.drained(readable, ANSWERS_WITHIN)
    if not ended:
        reaper.send(pid, signal.SIGKILL)
    code = reaper.exit_code(os.waitpid(pid, 0)[1])
    return text, code if ended else None
