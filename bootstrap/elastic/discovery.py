"""Checks of an elastic job before its command starts: possible numbers, a discovery script that works."""

# With a bad script, horovodrun prints a trace in a thread, and the job waits for ever.
from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from mpiboot.bootstrap.process import spawn
from mpiboot.job.elastic import DISCOVERY
from mpiboot.job.elastic_faults import faults, too_few
from mpiboot.job.errors import UserError
from mpiboot.job.values import natural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mpiboot.bootstrap.hosts import Entry
    from mpiboot.bootstrap.process.signals import Signals
    from mpiboot.job.elastic import Elastic

ANSWERS_WITHIN = 30.0
MISSING = 3


def demand_possible(size: Elastic, entries: Sequence[Entry], log: Callable[[str], None]) -> None:
    """Refuse numbers that no number of workers can satisfy. Log what a job waits for that must grow first."""
    slots = entries[0].slots if entries else 1
    problems = list(faults(size, slots))
    if problems:
        raise UserError("; ".join(problems))
    lacking = too_few(size, len(entries), slots) if entries else ""
    if lacking:
        log(f"{lacking}; waiting for it to grow (kubectl patch, mpiboot scale)")


def check(command: Sequence[str], environ: Mapping[str, str], signals: Signals) -> None:
    """Run the script once, as horovodrun will."""
    script = named(command)
    if script:
        problem = _try(script, environ, signals)
        if problem:
            raise UserError(f"the discovery script {script} {problem}")


def demand_horovod(
    command: Sequence[str], host: str, ssh_config: str, environ: Mapping[str, str], signals: Signals
) -> None:
    """Ask one worker whether it has horovodrun, with the launcher's PATH, which horovodrun passes on. All workers have
    the same image. If the worker does not answer, horovodrun reports it.
    """
    path = environ.get("PATH", "")
    question = f"PATH={quote(path)}; command -v {quote(command[0])} >/dev/null || exit {MISSING}"
    words = ["ssh", "-F", ssh_config, "-o", "ConnectTimeout=5", "-o", "ConnectionAttempts=1", host, question]
    if spawn.finished(words, environ, signals, ANSWERS_WITHIN, f"asking {host} for Horovod").code == MISSING:
        raise UserError(
            f"{host} has no {command[0]} (PATH={path}), so its image lacks Horovod; give workers the launcher's image"
        )


def named(command: Sequence[str]) -> str:
    """The script of a command line. Empty if there is none, or only in a shell's words: these may write it first."""
    for word, following in zip(command, [*command[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name == DISCOVERY:
            return value if equals else following
    return ""


def fault(text: str, code: int) -> str:
    """The problem with the script's output; empty if it lists hosts."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if code:
        return f"failed with exit code {code}"
    if not lines:
        return "printed nothing, though workers are ready; it must print HOST or HOST:SLOTS for each"
    for number, line in enumerate(lines, 1):
        host, colon, slots = line.partition(":")
        if not host or len(line.split()) != 1 or not all(c.isalnum() or c in "._-" for c in host):
            return f"printed {line[:60]!r} in line {number}, which is not HOST or HOST:SLOTS"
        if colon and not natural(slots):
            return f"printed {line[:60]!r} in line {number}: slots must be a number from 1 up"
    return ""


def _try(script: str, environ: Mapping[str, str], signals: Signals) -> str:
    """The problem with the script. Runs it as horovodrun does: by a shell, with the launcher's stderr."""
    done = spawn.finished(["/bin/sh", "-c", script], environ, signals, ANSWERS_WITHIN, "the discovery script ran")
    return done.why if done.code is None else fault(done.text, done.code)
