"""What is known of every worker, and what follows from it: whom to try, whether to go, whether to give up. No I/O."""

from __future__ import annotations

from enum import Enum
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from mpiboot.bootstrap import pace
from mpiboot.bootstrap.addresses import Place, is_address
from mpiboot.bootstrap.host import Host, Policy
from mpiboot.bootstrap.hostfile import Entry
from mpiboot.ssh.failure import Failure, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mpiboot.bootstrap.resolver import Answer
    from mpiboot.checkin.client import Snapshot, WorkerState

# An early question is what gets "no such name" into a cache on the way.
DNS_AFTER = 1.5
# A stream that knows a container and not its address has a worker that cannot check in.
DNS_AFTER_ITS_START = 5.0
# A worker that answered before this may be gone again; it is asked once more before the start.
FRESH_FOR = 10.0
NO_STREAM_AFTER = 60.0
# Elastic jobs: a dead host that stays listed would end the whole job. No cluster tells of a network that was cut.
LOOK_AGAIN_AFTER = 3.0


class Verdict(Enum):
    WAIT = "wait"
    GO = "go"
    OUT_OF_TIME = "out of time"


class Picture:
    """All workers of the job, in the hostfile's order."""

    def __init__(self, entries: Iterable[Entry], policy: Policy, now: float) -> None:
        self.policy, self.started, self.changed_at = policy, now, now
        self._dns_from = now + (DNS_AFTER if policy.told_elsewhere else 0.0)
        self.hosts = {entry.name: Host(entry, now, self._dns_from) for entry in entries}
        self.ready_count = 0
        self.revision = 0  # grows with everything that may turn the verdict
        self._queue: list[tuple[float, str]] = []
        self._earliest_end = now + policy.limit  # nobody runs out of time before this
        self._stream_heard = False
        self._stream_lost_at: float | None = None
        for host in self.hosts.values():
            self._schedule(host, now)

    @property
    def needed(self) -> int:
        wanted = self.policy.at_least or len(self.hosts)
        return wanted if self.policy.elastic else min(wanted, len(self.hosts))

    def waiting(self) -> list[Host]:
        return [host for host in self.hosts.values() if not host.ready]

    def ready(self) -> list[Host]:
        return [host for host in self.hosts.values() if host.ready]

    # What came in.

    def told_by_file(self, places: Mapping[str, Place], now: float) -> None:
        if self.policy.elastic:
            if not places:  # nobody at all is a file that is just being written
                return
            if not self._stream_heard:
                self._members(list(places), now)
        for host in self.hosts.values():
            before = host.place
            host.by_file = places.get(host.name)
            self._moved(host, before, now)

    def told_by_stream(self, snapshot: Snapshot, now: float) -> None:
        if not snapshot.connected:
            self._without_stream(now)
        else:
            self._stream_lost_at, self._stream_heard = None, True
            if self.policy.elastic and snapshot.workers:
                self._members([state.name for state in snapshot.workers], now)
        for state in snapshot.workers:
            host = self.hosts.get(state.name)
            if host and host.state != state:
                self._told_of(host, state, now)

    def looked_up(self, answer: Answer, now: float) -> None:
        host = self.hosts.get(answer.name)
        if host is None:
            return
        host.probing = host.ask_again = False
        host.lookups += 1
        before = host.place
        if answer.address:
            host.by_dns = Place(answer.address)
            host.named_after = host.named_after or now - self.started
        elif host.place is None:
            self._failed(host, Failure(Kind.DNS, answer.error), now)
        self._moved(host, before, now)
        if host.place is None:
            quiet = now - self.changed_at
            self._schedule(host, now + pace.until_next_look_up(self._waiting_count(), quiet, host.lookups))
        elif host.place == before:
            self._schedule(host, now)

    def probed(self, name: str, place: Place, outcome: Failure | None, now: float) -> None:
        """The outcome of one connection to that place; None: it greeted as SSH servers do."""
        host = self.hosts[name]
        host.probing = False
        if host.place != place:  # it moved meanwhile: this says nothing about where it is now
            self._schedule(host, now)
            return
        host.attempts += 1
        if outcome is None:
            self._confirmed(host, now)
            return
        if host.ready and outcome.kind is Kind.TIMED_OUT and not host.doubted:
            # To take a worker from a running job is dear, and a packet may be lost: it is asked once more.
            host.doubted = True
            self._schedule(host, now)
            return
        host.confirming = False
        self._set_ready(host, now, ready=False)
        self._failed(host, outcome, now)
        wait = pace.until_next_try(self._waiting_count(), now - self.changed_at, host.attempts)
        reached_sshd = outcome.kind in (Kind.NOT_SSH, Kind.HOST_KEY, Kind.AUTHENTICATION)
        self._schedule(host, now + (max(wait, pace.GENTLE) if reached_sshd else wait))
        # DNS may have named a worker that is gone: it is asked anew now and then.
        by_dns = host.by_dns is not None and host.place is host.by_dns and not is_address(host.name)
        host.ask_again = by_dns and host.attempts % 8 == 0

    # What follows.

    def due(self, now: float, at_most: int) -> list[Host]:
        """Hosts to try now: those with a place by a connection, the others by a look-up."""
        found: list[Host] = []
        while self._queue and self._queue[0][0] <= now and len(found) < at_most:
            at, name = heappop(self._queue)
            host = self.hosts.get(name)
            if host is None or host.try_at != at or host.probing or (host.ready and not host.confirming):
                continue
            if host.place is None and now < host.dns_from:
                self._schedule(host, host.dns_from)
                continue
            if host.place is not None and not self.policy.probe:
                self._confirmed(host, now)
                continue
            host.probing = True
            found.append(host)
        return found

    def next_due(self) -> float:
        return self._queue[0][0] if self._queue else float("inf")

    def verdict(self, now: float) -> Verdict:
        """GO once enough workers are ready and were so just now; OUT_OF_TIME once that cannot happen any more."""
        if self.ready_count >= self.needed:
            stale = [h for h in self.ready() if not h.checked_in and now - h.greeted > FRESH_FOR]
            if self.ready_count - len(stale) >= self.needed:
                return Verdict.GO
            for host in stale:
                if not host.confirming:
                    host.confirming = True
                    self._schedule(host, now)
            return Verdict.WAIT
        if now < self._earliest_end:  # asked after each of a thousand answers, so it must not count every time
            return Verdict.WAIT
        if self._stream_lost_at is not None and now - self._stream_lost_at > NO_STREAM_AFTER:
            self._excuse_nobody()
        self._earliest_end = self._next_end(now)
        hopeful = sum(1 for host in self.hosts.values() if host.ready or self._has_time(host, now))
        if hopeful >= self.needed or now < self._more_may_come_until:
            return Verdict.WAIT
        return Verdict.OUT_OF_TIME

    def gives_up_at(self, now: float) -> float:
        """The next moment at which the verdict may turn without anything happening, or somewhat earlier."""
        return self._earliest_end if self._earliest_end > now else self._next_end(now)

    def _next_end(self, now: float) -> float:
        clocks = [host.clock_from for host in self.hosts.values() if not host.ready]
        ends = [clock + self.policy.limit for clock in clocks if clock is not None]
        if self._stream_lost_at is not None:
            ends.append(self._stream_lost_at + NO_STREAM_AFTER)
        if self.policy.elastic:
            ends.append(self._more_may_come_until)
        return min((end for end in ends if end > now), default=float("inf"))

    @property
    def _more_may_come_until(self) -> float:
        """An elastic job may need more workers than it has been told of so far."""
        return self.started + self.policy.limit if self.policy.elastic else self.started

    def _members(self, names: Sequence[str], now: float) -> None:
        """The job has grown or shrunk to these workers."""
        slots = next((host.slots for host in self.hosts.values()), 1)
        for name in set(self.hosts) - set(names):
            self._set_ready(self.hosts[name], now, ready=False)
            del self.hosts[name]
            self._changed(now)
        for name in names:
            if name not in self.hosts:
                self.hosts[name] = Host(Entry(name, slots), now, self._dns_from)
                self._schedule(self.hosts[name], now)
                self._changed(now)

    def _without_stream(self, now: float) -> None:
        """Nobody tells any more, so names are asked for again."""
        self.revision += 1
        if self._stream_lost_at is None:
            self._stream_lost_at = now
            self._earliest_end = min(self._earliest_end, now + NO_STREAM_AFTER)
            for host in self.hosts.values():
                host.dns_from = max(now, self._dns_from)
                if host.place is None and not host.probing:
                    self._schedule(host, host.dns_from)

    def _told_of(self, host: Host, state: WorkerState, now: float) -> None:
        before, host.state = host.place, state
        if state.address:
            host.by_stream = Place(state.address, state.port or None, state.user or None)
        elif state.state in ("pending", "failed"):
            host.by_stream = host.by_dns = None  # its next container will have another address
        if state.state == "pending":
            host.clock_from = None
            host.pending = state.reason or "pending"
        else:
            host.clock_from = now if host.clock_from is None else host.clock_from
            self._earliest_end = min(self._earliest_end, host.clock_from + self.policy.limit)
            host.pending = f"failed: {state.reason or 'its container ended'}" if state.state == "failed" else ""
        # There is no address to be found for a container that does not run.
        host.dns_from = float("inf") if state.state in ("pending", "failed") else now + DNS_AFTER_ITS_START
        self._moved(host, before, now)
        if host.place is None and not host.probing:
            self._schedule(host, host.dns_from)
        host.uid = state.uid or host.uid
        host.checked_in = state.ready and self.policy.trust_check_in
        if host.checked_in:
            self._set_ready(host, now, ready=True)
            self._keep_an_eye_on(host, now)
        elif host.ready:
            self._set_ready(host, now, ready=False)
            self._schedule(host, now)
        self._changed(now)

    def _moved(self, host: Host, before: Place | None, now: float) -> None:
        place = host.place
        if place == before:
            return
        self._changed(now)
        self._set_ready(host, now, ready=False)
        host.failure = None
        self._schedule(host, now)

    def _confirmed(self, host: Host, now: float) -> None:
        host.greeted, host.confirming, host.doubted = now, False, False
        self.revision += 1
        self._set_ready(host, now, ready=True)
        self._keep_an_eye_on(host, now)

    def _keep_an_eye_on(self, host: Host, now: float) -> None:
        if self.policy.elastic and self.policy.probe:
            host.confirming = True
            self._schedule(host, now + LOOK_AGAIN_AFTER)

    def _failed(self, host: Host, failure: Failure, now: float) -> None:
        if host.failure is None or host.failure.kind != failure.kind:
            self._changed(now)
        host.failure = failure

    def _set_ready(self, host: Host, now: float, *, ready: bool) -> None:
        if host.ready != ready:
            host.ready = ready
            self.ready_count += 1 if ready else -1
            if not ready and self._stream_heard and host.clock_from is not None:
                # It restarts, maybe hours after the first start. Without a stream the limit is one for all together.
                host.clock_from = now
                self._earliest_end = min(self._earliest_end, now + self.policy.limit)
            self._changed(now)

    def _changed(self, now: float) -> None:
        self.changed_at = now
        self.revision += 1

    def _waiting_count(self) -> int:
        return len(self.hosts) - self.ready_count

    def _has_time(self, host: Host, now: float) -> bool:
        return host.clock_from is None or now - host.clock_from < self.policy.limit

    def _excuse_nobody(self) -> None:
        assert self._stream_lost_at is not None
        for host in self.hosts.values():
            if host.clock_from is None:
                host.clock_from = self._stream_lost_at + NO_STREAM_AFTER

    def _schedule(self, host: Host, at: float) -> None:
        host.try_at = at
        if at < float("inf"):
            heappush(self._queue, (at, host.name))
