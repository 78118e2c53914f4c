"""Runs a program so that all its descendants end with it, as Docker does with a container.

`python -m mpiboot.engines.local.guard LIFELINE SCRATCH [HOST] -- PROGRAM ARGS...` ends as the program ends, and nothing
of it is left. The guard passes signals on. It also ends the program when the other end of the pipe LIFELINE closes,
which happens even if `mpiboot run` is killed with SIGKILL: then the guard removes the job's directory SCRATCH as well,
which holds its keys. With HOST the program has this host name, and SCRATCH/hosts as /etc/hosts, if the kernel lets us.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import time

from mpiboot.bootstrap.process import reaper, spawn
from mpiboot.bootstrap.process.signals import FORWARDED, Signals
from mpiboot.job.errors import UserError

ENDING_MAY_TAKE = 5.0


def main(argv: list[str]) -> int:
    """The program's exit code, as a shell reports it."""
    split = argv.index("--")
    (lifeline_text, scratch, *host), command = argv[:split], argv[split + 1 :]
    lifeline = int(lifeline_text)
    os.set_inheritable(lifeline, False)  # noqa: FBT003 (os takes it by position)
    signals = Signals(FORWARDED)
    reaper.adopt_orphans()
    environment = {**os.environ}
    if host:
        _take_name(host[0], f"{scratch}/hosts", environment)
    try:
        child = spawn.spawn(command, environment)
    except UserError as error:
        sys.stderr.write(f"mpiboot: {error}\n")
        return error.exit_code
    code = guard(child, lifeline, signals)
    end_all()
    if code is None:
        shutil.rmtree(scratch, ignore_errors=True)
        return 128 + signal.SIGTERM
    return code


def _take_name(name: str, hosts: str, environment: dict[str, str]) -> None:
    from mpiboot.engines.local import hostname

    if not hostname.take(name, hosts):
        # These collective algorithms group ranks by host, and hang where all workers have one host name.
        environment.setdefault("OMPI_MCA_coll", "^han")


def guard(child: int, lifeline: int, signals: Signals) -> int | None:
    """Pass signals on to the child until it ends; its exit code, or None if the lifeline closes first."""
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
            return None


def end_all() -> None:
    """Send SIGTERM to all descendants that are left, and SIGKILL to those that have not ended in time."""
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
            time.sleep(0.01)  # between two checks


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
