"""The workers of a job as the launcher knows them: which to probe, whether to start, when to give up. No I/O."""

from __future__ import annotations

from enum import Enum
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.bootstrap.hosts import Endpoint, Entry, is_address
from mpiboot.ssh.failure import Failure, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mpiboot.bootstrap.wait.resolver import Answer
    from mpiboot.checkin.client import Snapshot, WorkerState


# sshd counts connections that do not log in, and newer versions penalise them: one a second does no harm.
GENTLE = 1.0

CONNECT_WITHIN = (1.0, 3.0)  # seconds, first and later attempts: a packet lost early is soon sent again
BANNER_WITHIN = 10.0

_TRIES_A_SECOND = ((10.0, 400.0, 0.05), (60.0, 80.0, 0.25), (float("inf"), 30.0, 1.0))
_LOOKUPS_A_SECOND = ((10.0, 100.0, 0.25), (60.0, 30.0, 0.5), (float("inf"), 10.0, 1.0))


def until_next_try(waiting: int, quiet_for: float, attempts: int) -> float:
    """Seconds until the next probe of a worker, when `waiting` workers are not ready and nothing changed lately."""
    return _spread(_interval(_TRIES_A_SECOND, waiting, quiet_for), attempts)


def until_next_look_up(waiting: int, quiet_for: float, attempts: int) -> float:
    """Seconds until the next DNS query for a name."""
    return _spread(_interval(_LOOKUPS_A_SECOND, waiting, quiet_for), attempts)


def connect_within(attempts: int) -> float:
    return CONNECT_WITHIN[0] if attempts < 5 else CONNECT_WITHIN[1]


def _interval(table: tuple[tuple[float, float, float], ...], waiting: int, quiet_for: float) -> float:
    rate, at_least = next((rate, least) for until, rate, least in table if quiet_for < until)
    return max(at_least, waiting / rate)


def _spread(seconds: float, attempts: int) -> float:
    """Between 0.8 and 1.2 times as long, so that workers probed together spread out."""
    return seconds * (0.8 + 0.4 * (attempts * 0.618 % 1.0))


class Policy(NamedTuple):
    """When a worker counts as ready, and how long that may take. `limit` in seconds; `at_least` 0: all workers."""

    limit: float
    at_least: int = 0
    probe: bool = True
    trust_check_in: bool = True  # False: probe workers that checked in too
    other_sources: bool = False  # a stream or an address file is configured, so DNS can wait
    elastic: bool = False  # the source of addresses also says which workers there are


class Worker:
    """One worker. Times are on the monotonic clock."""

    __slots__ = (
        "ask_again", "attempts", "by_dns", "by_file", "by_stream", "checked_in", "clock_from", "confirming", "dns_from",
        "doubted", "failure", "greeted", "lookups", "name", "named_after", "pending", "probing", "ready", "slots",
        "start", "state", "try_at", "uid",
    )  # fmt: skip

    def __init__(self, entry: Entry, now: float, dns_from: float) -> None:
        self.name, self.slots = entry
        self.dns_from = dns_from
        self.by_stream: Endpoint | None = None
        self.by_file: Endpoint | None = None
        self.by_dns: Endpoint | None = Endpoint(entry.name) if is_address(entry.name) else None
        self.failure: Failure | None = None
        self.ready = self.checked_in = self.probing = self.confirming = self.doubted = self.ask_again = False
        self.attempts = self.lookups = 0
        self.greeted = self.named_after = 0.0
        self.try_at = now
        self.clock_from: float | None = now  # None: the worker waits for a machine or an image
        self.pending = ""
        self.state: WorkerState | None = None
        self.uid = self.start = ""  # of its pod, and of the worker in it

    @property
    def endpoint(self) -> Endpoint | None:
        return self.by_stream or self.by_file or self.by_dns

    @property
    def place(self) -> tuple[object, ...]:
        """Differs for each container that the worker runs in."""
        return self.endpoint, self.uid, self.state.start if self.state else ""

    @property
    def why_not(self) -> str:
        """Why the worker is not ready, in a few words."""
        if self.pending:
            return self.pending
        return str(self.failure or ("no address" if self.endpoint is None else "not probed yet"))


# A DNS cache would keep the "no such name" of an early query.
DNS_AFTER = 1.5
# If the stream reports a running container without an address, its worker cannot check in.
DNS_AFTER_ITS_START = 5.0
# A worker that answered longer ago may be gone: it is probed again before the start.
FRESH_FOR = 10.0
NO_STREAM_AFTER = 60.0
# Elastic jobs: a dead worker that stays listed would end the whole job, and no cluster reports a cut network.
LOOK_AGAIN_AFTER = 3.0


class Verdict(Enum):
    WAIT = "wait"
    GO = "go"
    OUT_OF_TIME = "out of time"


class WorkerTable:
    """All workers of the job, in the hostfile's order."""

    def __init__(self, entries: Iterable[Entry], policy: Policy, now: float) -> None:
        self.policy, self.started, self.changed_at = policy, now, now
        self._dns_from = now + (DNS_AFTER if policy.other_sources else 0.0)
        self.workers = {entry.name: Worker(entry, now, self._dns_from) for entry in entries}
        self.ready_count = 0
        # Of an elastic job: how often a worker of this name was started again after an end that its source explains.
        self.starts: dict[str, int] = {}
        self.revision = 0  # grows with every change that may change the verdict
        self._queue: list[tuple[float, str]] = []
        self._earliest_end = now + policy.limit  # no worker runs out of time before this
        self._stream_connected = False
        self._lost_stream_at: float | None = None
        for worker in self.workers.values():
            self._schedule(worker, now)

    @property
    def needed(self) -> int:
        wanted = self.policy.at_least or len(self.workers)
        return wanted if self.policy.elastic else min(wanted, len(self.workers))

    def waiting(self) -> list[Worker]:
        return [worker for worker in self.workers.values() if not worker.ready]

    def ready(self) -> list[Worker]:
        return [worker for worker in self.workers.values() if worker.ready]

    # Updates from the sources.

    def update_from_file(self, endpoints: Mapping[str, Endpoint], now: float) -> None:
        if self.policy.elastic:
            if not endpoints:  # an empty file is just being written
                return
            if not self._stream_connected:
                self._set_names(list(endpoints), now)
        for worker in self.workers.values():
            before = worker.endpoint
            worker.by_file = endpoints.get(worker.name)
            if before and worker.by_file and before.address != worker.by_file.address:
                self._started_again(worker.name)
            self._moved(worker, before, now)

    def update_from_stream(self, snapshot: Snapshot, now: float) -> None:
        if not snapshot.connected:
            self._stream_lost(now)
        else:
            self._lost_stream_at, self._stream_connected = None, True
            if self.policy.elastic and snapshot.workers:
                self._set_names([state.name for state in snapshot.workers], now)
        for state in snapshot.workers:
            worker = self.workers.get(state.name)
            if worker and worker.state != state:
                self._update_state(worker, state, now)

    def update_from_dns(self, answer: Answer, now: float) -> None:
        worker = self.workers.get(answer.name)
        if worker is None:
            return
        worker.probing = worker.ask_again = False
        worker.lookups += 1
        before = worker.endpoint
        if answer.address:
            worker.by_dns = Endpoint(answer.address)
            worker.named_after = worker.named_after or now - self.started
        elif worker.endpoint is None:
            self._failed(worker, Failure(Kind.DNS, answer.error), now)
        self._moved(worker, before, now)
        if worker.endpoint is None:
            quiet = now - self.changed_at
            self._schedule(worker, now + until_next_look_up(self._waiting_count(), quiet, worker.lookups))
        elif worker.endpoint == before:
            self._schedule(worker, now)

    def update_from_probe(self, name: str, endpoint: Endpoint, outcome: Failure | None, now: float) -> None:
        """The outcome of one probe of that endpoint. None: it sent an SSH banner."""
        worker = self.workers[name]
        worker.probing = False
        if worker.endpoint != endpoint:  # the worker moved meanwhile: the probe was of its old endpoint
            self._schedule(worker, now)
            return
        worker.attempts += 1
        if outcome is None:
            self._confirmed(worker, now)
            return
        if worker.ready and outcome.kind is Kind.TIMED_OUT and not worker.doubted:
            # Removing a worker from a running job is expensive, and a packet may be lost: it is probed once more.
            worker.doubted = True
            self._schedule(worker, now)
            return
        worker.confirming = False
        self._set_ready(worker, now, ready=False)
        self._failed(worker, outcome, now)
        wait = until_next_try(self._waiting_count(), now - self.changed_at, worker.attempts)
        reached_sshd = outcome.kind in (Kind.NOT_SSH, Kind.HOST_KEY, Kind.AUTHENTICATION)
        self._schedule(worker, now + (max(wait, GENTLE) if reached_sshd else wait))
        # DNS may have returned the address of a worker that is gone: its name is resolved again now and then.
        by_dns = worker.by_dns is not None and worker.endpoint is worker.by_dns and not is_address(worker.name)
        worker.ask_again = by_dns and worker.attempts % 8 == 0

    def doubt(self, name: str, now: float) -> None:
        """A login to the worker failed: probe it, also if it checked in."""
        worker = self.workers.get(name)
        if worker is not None:
            worker.checked_in, worker.greeted = False, 0.0
            self._set_ready(worker, now, ready=False)
            if not worker.probing:
                self._schedule(worker, now)

    def begin_again(self, now: float) -> None:
        """The workers are awaited once more: time counts from now."""
        self.started = self.changed_at = now
        self._earliest_end = now + self.policy.limit
        for worker in self.workers.values():
            if worker.clock_from is not None:
                worker.clock_from = now
            if not worker.ready and not worker.probing:
                self._schedule(worker, max(now, worker.dns_from) if worker.endpoint is None else now)
        self._changed(now)

    # Decisions.

    def due(self, now: float, at_most: int) -> list[Worker]:
        """The workers to probe now, and those without an endpoint, whose names are to be resolved."""
        due: list[Worker] = []
        while self._queue and self._queue[0][0] <= now and len(due) < at_most:
            at, name = heappop(self._queue)
            worker = self.workers.get(name)
            if worker is None or worker.try_at != at or worker.probing or (worker.ready and not worker.confirming):
                continue
            if worker.endpoint is None and now < worker.dns_from:
                self._schedule(worker, worker.dns_from)
                continue
            if worker.endpoint is not None and not self.policy.probe:
                self._confirmed(worker, now)
                continue
            worker.probing = True
            due.append(worker)
        return due

    def next_due(self) -> float:
        return self._queue[0][0] if self._queue else float("inf")

    def verdict(self, now: float) -> Verdict:
        """GO once enough workers are ready and answered just now; OUT_OF_TIME once there cannot be enough in time."""
        if self.ready_count >= self.needed:
            stale = [w for w in self.ready() if not w.checked_in and now - w.greeted > FRESH_FOR]
            if self.ready_count - len(stale) >= self.needed:
                return Verdict.GO
            for worker in stale:
                if not worker.confirming:
                    worker.confirming = True
                    self._schedule(worker, now)
            return Verdict.WAIT
        if now < self._earliest_end:  # this runs after each of a thousand answers, so it must not count every time
            return Verdict.WAIT
        if self._lost_stream_at is not None and now - self._lost_stream_at > NO_STREAM_AFTER:
            self._start_all_clocks()
        self._earliest_end = self._next_end(now)
        hopeful = sum(1 for worker in self.workers.values() if worker.ready or self._has_time(worker, now))
        if hopeful >= self.needed or now < self._more_may_come_until:
            return Verdict.WAIT
        return Verdict.OUT_OF_TIME

    def gives_up_at(self, now: float) -> float:
        """The next time at which the verdict may change without an event, or somewhat earlier."""
        return self._earliest_end if self._earliest_end > now else self._next_end(now)

    def _next_end(self, now: float) -> float:
        clocks = [worker.clock_from for worker in self.workers.values() if not worker.ready]
        ends = [clock + self.policy.limit for clock in clocks if clock is not None]
        if self._lost_stream_at is not None:
            ends.append(self._lost_stream_at + NO_STREAM_AFTER)
        if self.policy.elastic:
            ends.append(self._more_may_come_until)
        return min((end for end in ends if end > now), default=float("inf"))

    @property
    def _more_may_come_until(self) -> float:
        """An elastic job may still get workers that it does not know yet."""
        return self.started + self.policy.limit if self.policy.elastic else self.started

    def _set_names(self, names: Sequence[str], now: float) -> None:
        """Add and remove workers: the job has grown or shrunk to these."""
        slots = next((worker.slots for worker in self.workers.values()), 1)
        for name in set(self.workers) - set(names):
            self._set_ready(self.workers[name], now, ready=False)
            del self.workers[name]
            self._changed(now)
        for name in names:
            if name not in self.workers:
                self._started_again(name)
                self.workers[name] = Worker(Entry(name, slots), now, self._dns_from)
                self._schedule(self.workers[name], now)
                self._changed(now)

    def _started_again(self, name: str) -> None:
        self.starts[name] = self.starts.get(name, 0) + 1

    def _stream_lost(self, now: float) -> None:
        """The stream is lost, so names are resolved again."""
        self.revision += 1
        if self._lost_stream_at is None:
            self._lost_stream_at = now
            self._earliest_end = min(self._earliest_end, now + NO_STREAM_AFTER)
            for worker in self.workers.values():
                worker.dns_from = max(now, self._dns_from)
                if worker.endpoint is None and not worker.probing:
                    self._schedule(worker, worker.dns_from)

    def _update_state(self, worker: Worker, state: WorkerState, now: float) -> None:
        before, worker.state = worker.endpoint, state
        if state.address:
            worker.by_stream = Endpoint(state.address, state.port or None, state.user or None)
        elif state.state in ("pending", "failed"):
            worker.by_stream = worker.by_dns = None  # its next container will have another address
        if state.state == "pending":
            worker.clock_from = None
            worker.pending = state.reason or "pending"
        else:
            worker.clock_from = now if worker.clock_from is None else worker.clock_from
            self._earliest_end = min(self._earliest_end, worker.clock_from + self.policy.limit)
            worker.pending = f"failed: {state.reason or 'its container ended'}" if state.state == "failed" else ""
        # A container that does not run has no address.
        worker.dns_from = float("inf") if state.state in ("pending", "failed") else now + DNS_AFTER_ITS_START
        self._moved(worker, before, now)
        if worker.endpoint is None and not worker.probing:
            self._schedule(worker, worker.dns_from)
        started_before = (worker.uid, worker.start)
        worker.uid, worker.start = state.uid or worker.uid, state.start or worker.start
        if all(started_before) and started_before != (worker.uid, worker.start):
            self._started_again(worker.name)
        worker.checked_in = state.ready and self.policy.trust_check_in
        if worker.checked_in:
            self._set_ready(worker, now, ready=True)
            self._check_again_later(worker, now)
        elif worker.ready:
            self._set_ready(worker, now, ready=False)
            self._schedule(worker, now)
        self._changed(now)

    def _moved(self, worker: Worker, before: Endpoint | None, now: float) -> None:
        endpoint = worker.endpoint
        if endpoint == before:
            return
        self._changed(now)
        self._set_ready(worker, now, ready=False)
        worker.failure = None
        self._schedule(worker, now)

    def _confirmed(self, worker: Worker, now: float) -> None:
        worker.greeted, worker.confirming, worker.doubted = now, False, False
        self.revision += 1
        self._set_ready(worker, now, ready=True)
        self._check_again_later(worker, now)

    def _check_again_later(self, worker: Worker, now: float) -> None:
        if self.policy.elastic and self.policy.probe:
            worker.confirming = True
            self._schedule(worker, now + LOOK_AGAIN_AFTER)

    def _failed(self, worker: Worker, failure: Failure, now: float) -> None:
        if worker.failure is None or worker.failure.kind != failure.kind:
            self._changed(now)
        worker.failure = failure

    def _set_ready(self, worker: Worker, now: float, *, ready: bool) -> None:
        if worker.ready != ready:
            worker.ready = ready
            self.ready_count += 1 if ready else -1
            if not ready and self._stream_connected and worker.clock_from is not None:
                # It restarts, perhaps hours after its first start. Without a stream all workers share one limit.
                worker.clock_from = now
                self._earliest_end = min(self._earliest_end, now + self.policy.limit)
            self._changed(now)

    def _changed(self, now: float) -> None:
        self.changed_at = now
        self.revision += 1

    def _waiting_count(self) -> int:
        return len(self.workers) - self.ready_count

    def _has_time(self, worker: Worker, now: float) -> bool:
        return worker.clock_from is None or now - worker.clock_from < self.policy.limit

    def _start_all_clocks(self) -> None:
        assert self._lost_stream_at is not None
        for worker in self.workers.values():
            if worker.clock_from is None:
                worker.clock_from = self._lost_stream_at + NO_STREAM_AFTER

    def _schedule(self, worker: Worker, at: float) -> None:
        worker.try_at = at
        if at < float("inf"):
            heappush(self._queue, (at, worker.name))
