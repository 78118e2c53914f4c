"""The event loop that keeps the worker table current from all sources. It never blocks: threads call what may block."""

from __future__ import annotations

import selectors
import time
from functools import partial
from typing import TYPE_CHECKING, Protocol

from mpiboot.bootstrap.wait.prober import Prober

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.bootstrap.hosts import Endpoint
    from mpiboot.bootstrap.wait.addresses import AddressFile
    from mpiboot.bootstrap.wait.resolver import Resolver
    from mpiboot.bootstrap.wait.threads import Threads
    from mpiboot.bootstrap.wait.worker_table import Worker, WorkerTable
    from mpiboot.checkin.client import Stream
    from mpiboot.ssh.failure import Failure

    Login = Callable[[str, Endpoint], Failure | None]

# A check of an unchanged file is one system call.
CHECK_FILE_EVERY = 0.05
_LOGINS_AT_ONCE = 8
_PORT_QUESTIONS_AT_ONCE = 8
_LONGEST_SLEEP = 3600.0


class Ports(Protocol):
    """The ports that ssh takes from the image's own configuration."""

    def known(self, name: str) -> int | None: ...
    def group(self, name: str) -> str: ...
    def effective(self, name: str) -> object: ...


class Loop:
    """Everything to which the launcher reacts. Call `step` repeatedly. `add` registers further descriptors."""

    def __init__(
        self,
        table: WorkerTable,
        file: AddressFile | None,
        stream: Stream | None,
        ports: Ports,
        login: Login | None,
        log: Callable[[str], None],
    ) -> None:
        self.table, self._file, self._stream, self._log = table, file, stream, log
        self._ports, self._login = ports, login
        self._selector = selectors.DefaultSelector()
        self._prober = Prober(self._selector, self._greeted)
        self._resolver: Resolver | None = None
        self._port_questions: Threads[str] | None = None
        self._without_port: dict[str, list[tuple[str, Endpoint]]] = {}
        self._logins: Threads[tuple[str, Endpoint, Failure | None]] | None = None
        self._check_file_at = 0.0
        self.probes = True  # False: it only reads the stream
        # While the command runs: checks each worker's host key once, before it is ready again or at the next probe.
        self.key_check: Login | None = None
        self._checked_keys: set[tuple[str, Endpoint]] = set()
        if stream is not None:
            self.add(stream, self._read_stream)

    def add(self, source: object, callback: Callable[[float], None]) -> None:
        """Call `callback` with the time whenever the source is readable."""
        self._selector.register(source, selectors.EVENT_READ, callback)  # type: ignore[arg-type]

    def drop(self, source: object) -> None:
        self._selector.unregister(source)  # type: ignore[arg-type]

    def step(self, until: float) -> None:
        """Start the probes that are due, then wait for the next event, at most until this time."""
        now = time.monotonic()
        wake = min(until, self._prober.next_end())
        if self.probes:
            self._check_file(now)
            for worker in self.table.due(now, self._prober.room):
                self._try(worker, now)
            due = self.table.next_due() if self._prober.room > 0 else float("inf")
            wake = min(wake, self._prober.next_end(), due, self._check_file_at)
        # epoll takes at most 24 days, and --init-timeout may be longer.
        events = self._selector.select(min(max(0.0, wake - time.monotonic()), _LONGEST_SLEEP))
        now = time.monotonic()
        for key, _ in events:
            key.data(now)
        self._prober.end_overdue(now)

    def close(self) -> None:
        self._prober.close()
        if self._stream is not None:
            self._selector.unregister(self._stream)
            self._stream.close()
        self._selector.close()

    def _check_file(self, now: float) -> None:
        if self._file is None:
            self._check_file_at = float("inf")
        elif now >= self._check_file_at:
            self._check_file_at = now + CHECK_FILE_EVERY
            endpoints = self._file.changed()
            if endpoints is not None:
                self.table.update_from_file(endpoints, now)
            for problem in self._file.problems:
                self._log(problem)
            self._file.problems = ()

    def _read_stream(self, now: float) -> None:
        assert self._stream is not None
        snapshot = self._stream.poll()
        if snapshot is not None:
            self.table.update_from_stream(snapshot, now)

    def _try(self, worker: Worker, now: float) -> None:
        endpoint = worker.endpoint
        if endpoint is None or worker.ask_again:
            self._resolve(worker.name)
            return
        port = endpoint.port or self._ports.known(worker.name)
        if port is None:
            self._ask_port(worker.name, endpoint)
        else:
            self._prober.start(worker.name, endpoint._replace(port=port), worker.attempts, now)

    def _ask_port(self, name: str, endpoint: Endpoint) -> None:
        """Ask ssh for the port in a thread, then probe the worker. ssh may resolve names, which takes seconds."""
        if self._port_questions is None:
            from mpiboot.bootstrap.wait.threads import Threads

            self._port_questions = Threads("ssh -G", _PORT_QUESTIONS_AT_ONCE)
            self.add(self._port_questions, self._port_answered)
        group = self._ports.group(name)
        waiting = self._without_port.setdefault(group, [])
        waiting.append((name, endpoint))
        if len(waiting) == 1:
            self._port_questions.submit(partial(_find_port, self._ports, name))

    def _port_answered(self, now: float) -> None:
        assert self._port_questions is not None
        for group in self._port_questions.results():
            for name, endpoint in self._without_port.pop(group, []):
                worker = self.table.workers.get(name)
                if worker is not None:
                    port = self._ports.known(name)
                    self._prober.start(name, endpoint._replace(port=port), worker.attempts, now)

    def _resolve(self, name: str) -> None:
        if self._resolver is None:
            from mpiboot.bootstrap.wait.resolver import Resolver

            self._resolver = Resolver()
            self.add(self._resolver, self._answered)
        self._resolver.ask(name)

    def _answered(self, now: float) -> None:
        assert self._resolver is not None
        for answer in self._resolver.answers():
            self.table.update_from_dns(answer, now)

    def _greeted(self, name: str, endpoint: Endpoint, outcome: Failure | None, now: float) -> None:
        login = None if outcome is not None else self._login or self._key_check_for(name, endpoint)
        if login is None:
            self._report(name, endpoint, outcome, now)
            return
        if self._logins is None:
            from mpiboot.bootstrap.wait.threads import Threads

            self._logins = Threads("login", _LOGINS_AT_ONCE)
            self.add(self._logins, self._logged_in)
        self._logins.submit(partial(_log_in, login, name, endpoint))

    def _key_check_for(self, name: str, endpoint: Endpoint) -> Login | None:
        """The check of a worker's host key. None if the worker checked in or its key was checked before."""
        worker = self.table.workers.get(name)
        if worker is None or worker.checked_in or (worker.ready and (name, endpoint) in self._checked_keys):
            return None
        return self.key_check

    def _logged_in(self, now: float) -> None:
        assert self._logins is not None
        for name, endpoint, outcome in self._logins.results():
            if outcome is None:
                self._checked_keys.add((name, endpoint))
            self._report(name, endpoint, outcome, now)

    def _report(self, name: str, endpoint: Endpoint, outcome: Failure | None, now: float) -> None:
        worker = self.table.workers.get(name)
        if worker is not None:
            # The table has the endpoint as its source gave it, perhaps without the port that was probed.
            known = worker.endpoint
            same = known is not None and known._replace(port=known.port or endpoint.port) == endpoint
            self.table.update_from_probe(name, known if same and known else endpoint, outcome, now)


def _find_port(ports: Ports, name: str) -> str:
    """The group of names whose port is known now."""
    ports.effective(name)
    return ports.group(name)


def _log_in(login: Login, name: str, endpoint: Endpoint) -> tuple[str, Endpoint, Failure | None]:
    return name, endpoint, login(name, endpoint)
