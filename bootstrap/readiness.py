"""Keeps the picture of the workers current: all sources and all hosts at once, in one loop, without ever blocking."""

from __future__ import annotations

import selectors
import time
from functools import partial
from typing import TYPE_CHECKING

from mpiboot.bootstrap.prober import Prober

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.bootstrap.addresses import AddressFile, Place
    from mpiboot.bootstrap.beside import Beside
    from mpiboot.bootstrap.host import Host
    from mpiboot.bootstrap.picture import Picture
    from mpiboot.bootstrap.resolver import Resolver
    from mpiboot.checkin.client import Stream
    from mpiboot.ssh.failure import Failure

    Login = Callable[[str, Place], Failure | None]

# A look at an unchanged file is one system call.
LOOK_AT_FILE_EVERY = 0.05
_LOGINS_AT_ONCE = 8


class Watch:
    """Everything the launcher listens to. `step` once, or again and again; others may add descriptors of their own."""

    def __init__(
        self,
        picture: Picture,
        file: AddressFile | None,
        stream: Stream | None,
        port_of: Callable[[str], int],
        login: Login | None,
        log: Callable[[str], None],
    ) -> None:
        self.picture, self._file, self._stream, self._log = picture, file, stream, log
        self._port_of, self._login = port_of, login
        self._selector = selectors.DefaultSelector()
        self._prober = Prober(self._selector, self._greeted)
        self._resolver: Resolver | None = None
        self._logins: Beside[tuple[str, Place, Failure | None]] | None = None
        self._look_at = 0.0
        self.trying = True  # False: only listen
        # While the command runs: asked of each worker once, before it is ready again or at the next look.
        self.key_check: Login | None = None
        self._keys_seen: set[tuple[str, Place]] = set()
        if stream is not None:
            self.add(stream, self._hear)

    def add(self, source: object, callback: Callable[[float], None]) -> None:
        """Call back, with the time, whenever the source is readable."""
        self._selector.register(source, selectors.EVENT_READ, callback)  # type: ignore[arg-type]

    def drop(self, source: object) -> None:
        self._selector.unregister(source)  # type: ignore[arg-type]

    def step(self, until: float) -> None:
        """Start what is due, then wait for the next thing to happen, at most until then."""
        now = time.monotonic()
        wake = min(until, self._prober.next_end())
        if self.trying:
            self._look(now)
            for host in self.picture.due(now, self._prober.room):
                self._try(host, now)
            due = self.picture.next_due() if self._prober.room > 0 else float("inf")
            wake = min(wake, self._prober.next_end(), due, self._look_at)
        events = self._selector.select(max(0.0, wake - time.monotonic()) if wake < float("inf") else None)
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

    def _look(self, now: float) -> None:
        if self._file is None:
            self._look_at = float("inf")
        elif now >= self._look_at:
            self._look_at = now + LOOK_AT_FILE_EVERY
            places = self._file.changed()
            if places is not None:
                self.picture.told_by_file(places, now)
                for problem in self._file.problems:
                    self._log(f"left out: {problem}")

    def _hear(self, now: float) -> None:
        assert self._stream is not None
        snapshot = self._stream.poll()
        if snapshot is not None:
            self.picture.told_by_stream(snapshot, now)

    def _try(self, host: Host, now: float) -> None:
        place = host.place
        if place is None or host.ask_again:
            self._ask(host.name)
            return
        if place.port is None:
            place = place._replace(port=self._port_of(host.name))
        self._prober.start(host.name, place, host.attempts, now)

    def _ask(self, name: str) -> None:
        if self._resolver is None:
            from mpiboot.bootstrap.resolver import Resolver

            self._resolver = Resolver()
            self.add(self._resolver, self._answered)
        self._resolver.ask(name)

    def _answered(self, now: float) -> None:
        assert self._resolver is not None
        for answer in self._resolver.answers():
            self.picture.looked_up(answer, now)

    def _greeted(self, name: str, place: Place, outcome: Failure | None, now: float) -> None:
        login = None if outcome is not None else self._login or self._unseen(name, place)
        if login is None:
            self._report(name, place, outcome, now)
            return
        if self._logins is None:
            from mpiboot.bootstrap.beside import Beside

            self._logins = Beside("login", _LOGINS_AT_ONCE)
            self.add(self._logins, self._logged_in)
        self._logins.submit(partial(_log_in, login, name, place))

    def _unseen(self, name: str, place: Place) -> Login | None:
        """The look at a worker's host key, if nobody has vouched for the sshd that greeted. A check-in does."""
        host = self.picture.hosts.get(name)
        if host is None or host.checked_in or (host.ready and (name, place) in self._keys_seen):
            return None
        return self.key_check

    def _logged_in(self, now: float) -> None:
        assert self._logins is not None
        for name, place, outcome in self._logins.results():
            if outcome is None:
                self._keys_seen.add((name, place))
            self._report(name, place, outcome, now)

    def _report(self, name: str, place: Place, outcome: Failure | None, now: float) -> None:
        host = self.picture.hosts.get(name)
        if host is not None:
            # The picture knows the place as it was told: maybe without the port that was tried.
            known = host.place
            same = known is not None and known._replace(port=known.port or place.port) == place
            self.picture.probed(name, known if same and known else place, outcome, now)


def _log_in(login: Login, name: str, place: Place) -> tuple[str, Place, Failure | None]:
    return name, place, login(name, place)
