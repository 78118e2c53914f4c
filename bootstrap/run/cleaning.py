"""Between two attempts: ends what the attempt before left on the workers, and makes sure of it."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.bootstrap.exit_codes import ENDED_BY_US
from mpiboot.bootstrap.process import reaper, spawn
from mpiboot.bootstrap.run import cleanup
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mpiboot.bootstrap.hosts import Endpoint
    from mpiboot.bootstrap.process.reaper import Stopped
    from mpiboot.bootstrap.run.cleanup import Launched
    from mpiboot.bootstrap.run.diagnosis import Leftovers
    from mpiboot.bootstrap.wait.worker_table import Worker, WorkerTable

SESSION_MAY_TAKE = 10.0
TRY_AGAIN_AFTER = 0.5
AT_ONCE = 64


class NotCleanError(UserError):
    """Processes of the attempt before may still run on some workers, so another attempt would disturb them."""

    exit_code = ENDED_BY_US


class Session(NamedTuple):
    """A login to a worker at the place that it had then, and until when it may take."""

    name: str
    place: object
    until: float


class Cleaning:
    """One login to each worker of the attempt, repeated until one has found nothing that is left.

    A worker that does not answer is probed until it does. Its successor may be at another address: the login then goes
    there, and finds nothing.
    """

    def __init__(
        self, left: Leftovers, table: WorkerTable, launched: Launched, environ: Mapping[str, str],
        publish: Callable[[], None], not_before: float, limit: float,
    ) -> None:  # fmt: skip
        """`publish` writes ssh's configuration with the workers' addresses of now. `not_before`: when the next attempt
        may start. `limit`: seconds for the logins to one worker.
        """
        self._table, self._launched, self._script, self._environ = table, launched, left.script, environ
        self._publish, self._not_before, self._limit = publish, not_before, limit
        self._published: dict[str, Endpoint | None] = {}
        self._next_try = dict.fromkeys(left.contacted, 0.0)  # of the workers that are not clean
        self._since: dict[str, tuple[object, float]] = {}  # name -> its place, and when it was first tried there
        self._sessions: dict[int, Session] = {}
        self.codes: dict[str, int | None] = {}  # of the script that looks for the command's programs

    def done(self, now: float) -> bool:
        return now >= self._not_before and not self._next_try

    def step(self, now: float) -> float:
        """Start the logins that are due, and end those that take too long. The time of the next call."""
        for pid, session in list(self._sessions.items()):
            worker = self._table.workers.get(session.name)
            if now >= session.until or worker is None or worker.place != session.place:
                self._end(pid, now)
        due = [worker for worker in self._left() if worker.ready and now >= self._next_try[worker.name]]
        due = due[: AT_ONCE - len(self._sessions)]
        if any(self._published.get(worker.name) != worker.endpoint for worker in due):
            self._publish()
            self._published = {worker.name: worker.endpoint for worker in self._table.workers.values()}
        for worker in due:
            self._start(worker, now)
        ends = [session.until for session in self._sessions.values()]
        return min(at for at in (*ends, *self._next_try.values(), self._not_before, float("inf")) if at > now)

    def collect(self, events: Iterable[reaper.Ended | Stopped], now: float) -> None:
        """Take note of logins that ended."""
        for event in events:
            if isinstance(event, reaper.Ended) and event.pid in self._sessions:
                self._ended(self._sessions.pop(event.pid).name, event.code, now)

    def close(self) -> None:
        for pid in self._sessions:
            reaper.send(pid, signal.SIGKILL)
        self._sessions.clear()

    def _left(self) -> list[Worker]:
        """The workers that are not clean. The job may have fewer workers now."""
        workers = {name: self._table.workers.get(name) for name in self._next_try}
        self._next_try = {name: at for name, at in self._next_try.items() if workers[name]}
        return [worker for worker in workers.values() if worker]

    def _start(self, worker: Worker, now: float) -> None:
        name, place = worker.name, worker.place
        if self._since.get(name, (None, 0.0))[0] != place:
            self._since[name] = place, now
        if now - self._since[name][1] > self._limit:
            raise NotCleanError(
                f"processes of the attempt before may still run on {name}: no login has ended them within "
                f"{self._limit:g} s; no further attempt starts"
            )
        self._next_try[name] = float("inf")
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            argv = cleanup.session(name, self._launched, self._script)
            pid = spawn.spawn(argv, self._environ, stdin=null, stdout=null, stderr=null)
        finally:
            os.close(null)
        self._sessions[pid] = Session(name, place, now + SESSION_MAY_TAKE)

    def _end(self, pid: int, now: float) -> None:
        reaper.send(pid, signal.SIGKILL)
        self._ended(self._sessions.pop(pid).name, cleanup.SSH_FAILED, now)

    def _ended(self, name: str, code: int, now: float) -> None:
        if code in (cleanup.SSH_FAILED, cleanup.LEFT):
            self._next_try[name] = now + TRY_AGAIN_AFTER
            if code == cleanup.SSH_FAILED:
                self._table.doubt(name, now)
            return
        self._next_try.pop(name, None)
        self.codes[name] = code
