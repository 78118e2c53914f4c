"""The end on the workers: what this launch started there and is still there is ended. Nothing else is touched."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.bootstrap import reaper, spawn
from mpiboot.bootstrap.signals import DONE
from mpiboot.job.errors import UserError
from mpiboot.ssh.server import LAUNCH_VARIABLE, WORKER_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MAY_TAKE = 5.0
AT_ONCE = 64
SSH_FAILED = 255

# By the variable that our ssh hands to every session, and every process there inherits. SIGTERM, a second, SIGKILL.
_SCRIPT = """
left() { grep -lz '^%(variable)s=%(launch)s$' /proc/[0-9]*/environ 2>/dev/null | sed 's|/proc/||;s|/environ||'; }
pids=$(left); [ -z "$pids" ] && exit 0
kill -TERM $pids 2>/dev/null
for _ in 1 2 3 4 5 6 7 8 9 10; do pids=$(left); [ -z "$pids" ] && exit 0; sleep 0.1; done
kill -KILL $pids 2>/dev/null
exit 0
"""


class Launched(NamedTuple):
    """How to reach the workers, and what marks this launch there."""

    ssh_config: str
    launch: str


def end_on(
    hosts: Sequence[str], launched: Launched, environ: Mapping[str, str], wait: Callable[[float], None]
) -> list[str]:
    """End it on these workers, side by side, in bounded time; the hosts that ssh could not log in to.

    `wait(seconds)` returns early when a child ends.
    """
    script = _SCRIPT % {"variable": LAUNCH_VARIABLE, "launch": launched.launch}
    return _on_each(hosts, script, launched.ssh_config, environ, wait)


def end_workers(
    hosts: Sequence[str], ssh_config: str, environ: Mapping[str, str], wait: Callable[[float], None]
) -> None:
    """Tell these workers that the work is done. One that does not hear it sees that the launcher is gone."""
    # The login is part of what ends then, so its own end says nothing.
    _on_each(hosts, f'kill -{int(DONE)} "${WORKER_VARIABLE}"', ssh_config, environ, wait)


def _on_each(
    hosts: Sequence[str], script: str, ssh_config: str, environ: Mapping[str, str], wait: Callable[[float], None]
) -> list[str]:
    """Run the script on these workers, side by side; the hosts that ssh could not log in to."""
    deadline = time.monotonic() + MAY_TAKE
    todo, running, failed = list(hosts), dict[int, str](), list[str]()
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        while (todo or running) and time.monotonic() < deadline:
            while todo and len(running) < AT_ONCE:
                host = todo.pop(0)
                # This session is no part of the launch. The first value wins, so it goes before the file's.
                mark = ["-o", f"SetEnv={LAUNCH_VARIABLE}=end", "-o", "ConnectTimeout=3", "-o", "ConnectionAttempts=1"]
                argv = ["ssh", *mark, "-F", ssh_config, host, script]
                running[spawn.spawn(argv, environ, stdin=null, stdout=null, stderr=null)] = host
            wait(0.1)
            for event in reaper.reap():
                host = running.pop(event.pid, "") if isinstance(event, reaper.Ended) else ""
                if host and isinstance(event, reaper.Ended) and event.code == SSH_FAILED:
                    failed.append(host)
    except UserError:  # no ssh here: then nothing was started there either
        return []
    finally:
        os.close(null)
        for pid in running:
            reaper.send(pid, signal.SIGKILL)
    return [*failed, *running.values()]
