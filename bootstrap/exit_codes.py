"""The exit codes of a launch, and its last line. Pure.

The launcher exits with the command's own code: 128 + N if signal N ended it. Its own codes are 74 (data could not be
moved), 124 (out of time), 125 (mpiboot ended the job), 126 and 127 (the command cannot be run), as in shells and
`timeout`.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpiboot.bootstrap.wait.worker_table import Worker, WorkerTable

NO_DATA = 74  # EX_IOERR of sysexits.h
OUT_OF_TIME = 124
ENDED_BY_US = 125
_LISTED = 40
# The signals that usually end programs: shells and mpiruns then exit with 128 + N.
_ENDS_PROGRAMS = frozenset({
    signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE,
    signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGXCPU,
})  # fmt: skip


def out_of_time(table: WorkerTable, now: float, limit: float) -> str:
    """The message of a wait that ended without enough workers: a line for each worker that is missing."""
    waiting, total = table.waiting(), len(table.workers)
    elapsed = now - table.started
    late = f"{len(waiting)} of {total} workers not ready after {elapsed:.1f} s"
    lines = [f"{late} (limit {limit:g} s, --init-timeout); exit {OUT_OF_TIME}"]
    lines += [_line(worker, table) for worker in waiting[:_LISTED]]
    if len(waiting) > _LISTED:
        lines.append(f"  and {len(waiting) - _LISTED} more")
    if table.ready_count:
        lines.append(f"  the other {table.ready_count} {'is' if table.ready_count == 1 else 'are'} ready")
    return "\n".join(lines)


def _line(worker: Worker, table: WorkerTable) -> str:
    endpoint = worker.endpoint
    where = f" at {endpoint.address}{f':{endpoint.port}' if endpoint.port else ''}" if endpoint else ""
    named = f"; the name resolved after {worker.named_after:.1f} s" if worker.named_after else ""
    tries = worker.attempts + worker.lookups
    since = f", {tries} {'try' if tries == 1 else 'tries'}" if tries else ""
    counted = ""
    if worker.clock_from is not None and worker.clock_from > table.started + 1:
        counted = f"; its container started {worker.clock_from - table.started:.0f} s after the launcher"
    return f"  {worker.name}{where}  {worker.why_not}{since}{named}{counted}"


def of_command(words: Sequence[str], code: int, ended_by: int = 0) -> str:
    """The last line about a command that failed; empty if it succeeded. `ended_by`: the signal that ended it, or 0.

    A code above 128 alone does not prove a signal: a program may exit with 192, and Open MPI adds an error number of
    its own to 128 (183 where it cannot find the program).
    """
    if code == 0:
        return ""
    name = words[0].rpartition("/")[2]
    if ended_by:
        return f"{name} ended by {signal_name(ended_by)} (exit {code})"
    likely = f" (128 + {signal_name(code - 128)})" if code - 128 in _ENDS_PROGRAMS else ""
    return f"{name} exited with code {code}{likely}"


def signal_name(number: int) -> str:
    """`SIGKILL`; most real-time signals have no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
