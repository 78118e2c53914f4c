"""Whether packets still come from the workers: attempts to connect, which the kernel of a worker answers.

mpirun waits for minutes, or for ever, for a host whose network is gone. A kernel answers as long as its network is
there, so a worker that is slow, or stopped, gives signs of life.
"""

# docs/decisions/0033-life-signs-of-workers.md
from __future__ import annotations

import errno
import select
import socket
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mpiboot.bootstrap.hosts import Endpoint
    from mpiboot.bootstrap.wait.worker_table import Worker

# Nothing listens on it, so the kernel alone answers. An attempt at sshd's port costs each worker a process.
QUIET_PORT = 1
# How many attempts a worker gets before it counts as lost.
LOOKS = 8
# As many of them must have failed: time passes as well while the launcher itself is stopped.
MISSED = 3
_TICK = (0.1, 1.0)  # seconds between two calls, at least and at most
_AT_ONCE = 128  # connections that are open at the same time

_ALIVE = (0, errno.ECONNREFUSED, errno.ECONNRESET)


class _Look:
    """One attempt to connect."""

    def __init__(self, address: str, port: int) -> None:
        self._socket = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        self._socket.settimeout(0.0)  # never block
        self._error = self._socket.connect_ex((address, port))

    def result(self) -> int | None:
        """The error number of the connection, 0 for one that stands; None: no answer yet."""
        if self._error != errno.EINPROGRESS:
            return self._error
        poll = select.poll()
        poll.register(self._socket, select.POLLOUT)
        if poll.poll(0):
            self._error = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            return self._error
        return None

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()


class _Signs:
    """The signs of life of one worker."""

    def __init__(self, endpoint: Endpoint, now: float, first_look: float) -> None:
        self.endpoint, self.heard, self.look_at = endpoint, now, first_look
        self.look: _Look | None = None
        self.at_sshd = False
        self.missed = 0


class LifeSigns:
    """Looks at the workers of a running command, one after the other. Call `step` repeatedly."""

    def __init__(self, timeout: float, port_of: Callable[[Worker], int]) -> None:
        """`timeout`: seconds without a sign of life after which a worker is lost. `port_of`: where its sshd listens."""
        self._port_of = port_of
        self._timeout, self._every = timeout, timeout / LOOKS
        self._tick = min(max(self._every / 4, _TICK[0]), _TICK[1])
        self._signs: dict[str, _Signs] = {}

    def step(self, workers: Iterable[Worker], now: float) -> tuple[str, float]:
        """Why the first worker is lost, or an empty text; and the time of the next call."""
        watched = [worker for worker in workers if worker.endpoint]
        for position, worker in enumerate(watched):
            assert worker.endpoint
            signs = self._signs.get(worker.name)
            if signs is None or signs.endpoint.address != worker.endpoint.address:
                first = now + self._every * position / len(watched)
                signs = self._signs[worker.name] = _Signs(worker.endpoint, now, first)
            self._look(worker, signs, now)
            if now - signs.heard >= self._timeout and signs.missed >= MISSED:
                where = f"{worker.name} was lost while the job ran: no packet came from {signs.endpoint.address}"
                return f"worker {where} for {self._timeout:g} s (--lost-worker-timeout)", float("inf")
        return "", now + self._tick

    def close(self) -> None:
        for signs in self._signs.values():
            if signs.look:
                signs.look.close()
        self._signs.clear()

    def _look(self, worker: Worker, signs: _Signs, now: float) -> None:
        if signs.look:
            result = signs.look.result()
            if result in _ALIVE:
                signs.heard, signs.missed = now, 0
                signs.look.close()
                signs.look = None
        if now < signs.look_at or sum(1 for other in self._signs.values() if other.look) >= _AT_ONCE:
            return
        if signs.look:  # no answer: a firewall may drop packets to other ports than sshd's
            signs.look.close()
            signs.missed += 1
            signs.at_sshd = not signs.at_sshd
        signs.look_at = now + self._every
        signs.look = _Look(signs.endpoint.address, self._port_of(worker) if signs.at_sshd else QUIET_PORT)


def absent(workers: Iterable[Worker], port_of: Callable[[Worker], int], within: float) -> list[Worker]:
    """Those of the workers on which no sshd accepts a connection. It takes all of `within` if a worker stays silent."""
    looks = [(worker, _Look(worker.endpoint.address, port_of(worker))) for worker in workers if worker.endpoint]
    ends = time.monotonic() + within
    poll = select.poll()
    for _, look in looks:
        poll.register(look, select.POLLOUT)
    try:
        while any(look.result() is None for _, look in looks) and (left := ends - time.monotonic()) > 0:
            for descriptor, _ in poll.poll(left * 1000):
                poll.unregister(descriptor)
        return [worker for worker, look in looks if look.result() != 0]
    finally:
        for _, look in looks:
            look.close()
