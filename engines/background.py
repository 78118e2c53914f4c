"""A job that goes on after `mpiboot run --detach` has returned."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

from mpiboot.engines.inbox import ENDING

if TYPE_CHECKING:
    from collections.abc import Callable

STDIN, STDOUT, STDERR = range(3)
CHUNK = 65536


def detached(work: Callable[[Callable[[str], None]], int], *, reads_stdin: bool) -> int:
    """Do `work` in a process of its own, and return 0 when it calls its argument with the name of the job.

    If it ends before that, the result is its exit code. What it prints until then is printed on stderr. `reads_stdin`:
    it reads its manifest there.
    """
    printed, prints = os.pipe()
    told, tells = os.pipe()
    child = os.fork()
    if child:
        os.close(prints)
        os.close(tells)
        return _until_started(child, printed, told)
    os.setsid()  # the end of the terminal is not the end of the job
    os.close(printed)
    os.close(told)
    null = os.open(os.devnull, os.O_RDWR)
    if not reads_stdin:
        os.dup2(null, STDIN)
    os.dup2(prints, STDOUT)
    os.dup2(prints, STDERR)
    os.close(prints)

    def started(name: str) -> None:
        for stream in (STDIN, STDOUT, STDERR):
            os.dup2(null, stream)
        os.write(tells, name.encode())
        os.close(tells)

    return work(started)


def _until_started(child: int, printed: int, told: int) -> int:
    def forward(number: int, _frame: object) -> None:
        os.kill(child, number)

    before: dict[int, Any] = {number: signal.signal(number, forward) for number in ENDING}
    try:
        while chunk := os.read(printed, CHUNK):
            os.write(STDERR, chunk)
        name = os.read(told, CHUNK).decode()
        if not name:
            return _exit_code(child)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(printed)
        os.close(told)
    os.write(STDOUT, f"{name}\n".encode())
    os.write(STDERR, f"mpiboot: the job goes on: mpiboot logs -f {name}; mpiboot delete {name}\n".encode())
    return 0


def _exit_code(child: int) -> int:
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return 128 - code if code < 0 else code
