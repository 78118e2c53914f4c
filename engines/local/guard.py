"""What a container is to Docker: a program and all that descends from it, which end together.

`python -m mpiboot.engines.local.guard LIFELINE -- PROGRAM ARGS...` ends as the program ends, with nothing of it left.
It ends the program when told to, and also when the other end of the pipe LIFELINE closes: that happens even if whoever
holds it is killed with SIGKILL.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

from mpiboot.bootstrap import reaper, spawn
from mpiboot.bootstrap.signals import FORWARDED, Signals
from mpiboot.job.errors import UserError

ENDING_MAY_TAKE = 5.0


def main(argv: list[str]) -> int:
    """The program's exit code, as a shell reports it."""
    lifeline, command = int(argv[0]), argv[2:]
    os.set_inheritable(lifeline, False)  # noqa: FBT003 (os takes it by position)
    signals = Signals(FORWARDED)
    reaper.adopt_orphans()
    try:
        child = spawn.spawn(command, os.environ)
    except UserError as error:
        sys.stderr.write(f"mpiboot: {error}\n")
        return error.exit_code
    code = guard(child, lifeline, signals)
    end_all()
    return code


def guard(child: int, lifeline: int, signals: Signals) -> int:
    """Wait for the child; pass on signals; end it when the lifeline is cut."""
    poll = select.poll()
    poll.register(signals.fileno(), select.POLLIN)
    poll.register(lifeline, select.POLLIN)
    while True:
        ready = dict(poll.poll())
        for event in reaper.reap():
            if event.pid == child and isinstance(event, reaper.Ended):
                return event.code
        for number in signals.take():
            if number != signal.SIGCHLD:
                reaper.send(child, number)
        if lifeline in ready:
            return 128 + signal.SIGTERM


def end_all() -> None:
    """SIGTERM for all that is left below us, SIGKILL for what does not heed it in time."""
    deadline = time.monotonic() + ENDING_MAY_TAKE
    left = reaper.descendants(os.getpid())
    for pid in left:
        reaper.send(pid, signal.SIGTERM)
    while left:
        reaper.reap()
        left = reaper.descendants(os.getpid())
        if time.monotonic() > deadline:
            for pid in left:
                reaper.send(pid, signal.SIGKILL)
        if left:
            time.sleep(0.01)  # between two looks at what is still there


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
