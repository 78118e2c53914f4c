"""Ends the processes that this launch started on the workers and that still run. It touches no other process."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.bootstrap.process import reaper, spawn
from mpiboot.bootstrap.process.signals import DONE, ENDING
from mpiboot.job.errors import UserError
from mpiboot.ssh.server import LAUNCH_VARIABLE, WORKER_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mpiboot.bootstrap.process.signals import Signals

SSH_FAILED = 255
# The launcher logs in to all workers at once, which takes 15 ms of processor time each. The longest limit is less than
# the 30 s that Kubernetes gives a pod to end.
_MAY_TAKE, _FOR_EACH_HOST, _AT_MOST = 5.0, 0.02, 20.0

LEFT = 63  # exit code of a session that could not end all processes
# Finds processes by the variable that our ssh sets in every session. SIGTERM, a second, SIGKILL until none is left.
_END = """
left() { grep -lz '^%(variable)s=%(launch)s$' /proc/[0-9]*/environ 2>/dev/null | sed 's|/proc/||;s|/environ||'; }
end() {
    pids=$(left); [ -z "$pids" ] && return
    kill -TERM $pids 2>/dev/null
    for _ in 1 2 3 4 5 6 7 8 9 10; do pids=$(left); [ -z "$pids" ] && return; sleep 0.1; done
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        kill -KILL $pids 2>/dev/null
        sleep 0.1; pids=$(left); [ -z "$pids" ] && return
    done
    exit %(left)d
}
end
"""


class Launched(NamedTuple):
    """How to reach the workers, and the mark of this launch there."""

    ssh_config: str
    launch: str


def end_on(
    hosts: Iterable[str], launched: Launched, afterwards: str, environ: Mapping[str, str], signals: Signals
) -> dict[str, int | None]:
    """End this launch's processes on these workers, all at the same time, and run the script `afterwards` there.

    Returns the exit code of each host's session: 255 where ssh could not log in, None where it did not end in time.
    """
    script = _script(launched, afterwards)
    return _on_each(hosts, script, launched.ssh_config, environ, signals)


def session(host: str, launched: Launched, afterwards: str) -> list[str]:
    """The command that does the same on one worker."""
    return _login(host, _script(launched, afterwards), launched.ssh_config)


def end_workers(hosts: Iterable[str], ssh_config: str, environ: Mapping[str, str], signals: Signals) -> None:
    """Send DONE to these workers. A worker that does not get it notices that the launcher is gone."""
    # This ends the login as well, so its exit code means nothing.
    _on_each(hosts, f'kill -{int(DONE)} "${WORKER_VARIABLE}"', ssh_config, environ, signals)


def limit(hosts: int) -> float:
    """The time limit, in seconds, for the sessions with this many hosts together."""
    return min(_MAY_TAKE + _FOR_EACH_HOST * hosts, _AT_MOST)


def run_all(
    commands: Mapping[str, Sequence[str]], environ: Mapping[str, str], signals: Signals, within: float
) -> dict[str, int | None]:
    """Run all these commands at once, without output. Returns their exit codes; None if one did not end in time.

    A signal that says to end ends the wait for them.
    """
    deadline = time.monotonic() + within
    codes: dict[str, int | None] = dict.fromkeys(commands)
    running: dict[int, str] = {}
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        for name, argv in commands.items():
            if time.monotonic() >= deadline:
                break
            with suppress(UserError):  # out of processes, for example: the caller reports this one
                running[spawn.spawn(argv, environ, stdin=null, stdout=null, stderr=null)] = name
        while running and time.monotonic() < deadline and not set(ENDING) & set(signals.take()):
            for event in reaper.reap():
                if isinstance(event, reaper.Ended) and event.pid in running:
                    codes[running.pop(event.pid)] = event.code
            if running:
                signals.wait(min(0.1, max(0.0, deadline - time.monotonic())))
    finally:
        os.close(null)
        for pid in running:
            reaper.send(pid, signal.SIGKILL)
    return codes


def _on_each(
    hosts: Iterable[str], script: str, ssh_config: str, environ: Mapping[str, str], signals: Signals
) -> dict[str, int | None]:
    commands = {host: _login(host, script, ssh_config) for host in hosts}
    return run_all(commands, environ, signals, limit(len(commands)))


def _script(launched: Launched, afterwards: str) -> str:
    return _END % {"variable": LAUNCH_VARIABLE, "launch": launched.launch, "left": LEFT} + afterwards


def _login(host: str, script: str, ssh_config: str) -> list[str]:
    # These sessions do not belong to the launch. ssh takes the first value, so this comes before the file's.
    options = ["-o", f"SetEnv={LAUNCH_VARIABLE}=end", "-o", "ConnectTimeout=3", "-o", "ConnectionAttempts=1"]
    return ["ssh", *options, "-F", ssh_config, host, script]
