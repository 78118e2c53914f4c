"""One job on the server: its roster, and the launchers that follow it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from mpiboot.checkin.messages import BEAT_EVERY, Line, form_line
from mpiboot.checkin.roster import Roster
from mpiboot.checkin.wire import STREAM_HEAD

if TYPE_CHECKING:
    from mpiboot.checkin.authority import Credentials
    from mpiboot.checkin.messages import Report
    from mpiboot.checkin.roster import View

MAX_READERS = 8  # a job has one launcher; the others are its lost connections, and users that debug
STALLED_FOR = 30.0  # seconds without reading what is sent; then the connection is closed


class JobRoom:
    """The roster of one job, and the streams of its launchers."""

    def __init__(self, credentials: Credentials, view: View, beat_every: float = BEAT_EVERY) -> None:
        self.credentials = credentials
        self._roster = Roster(view)
        self._beat_every = beat_every
        self._readers: list[_Reader] = []

    def check_in(self, index: int, report: Report) -> None:
        if self._roster.check_in(index, report):
            self._note(frozenset({index}))

    def observe(self, view: View) -> None:
        self._note(self._roster.observe(view))

    def close(self) -> None:
        for reader in self._readers:
            reader.transport.abort()

    async def follow(self, incoming: asyncio.StreamReader, outgoing: asyncio.StreamWriter) -> None:
        """Send all changes to one launcher until it leaves or stops reading. The newest launcher is always accepted."""
        reader = _Reader(outgoing.transport)
        self._readers.append(reader)
        if len(self._readers) > MAX_READERS:
            self._readers.pop(0).transport.abort()
        # With no buffer of its own, `drain` returns when the kernel has everything: changes until then are
        # kept as indexes and sent as one line, so a slow reader costs one line of memory, however long it takes.
        outgoing.transport.set_write_buffer_limits(high=0)
        gone = asyncio.create_task(incoming.read(1), name="check-in stream: peer's end")
        gone.add_done_callback(lambda _: reader.wake())
        try:
            outgoing.write(STREAM_HEAD)
            while not gone.done():
                outgoing.write(form_line(self._next_line(reader)))
                async with asyncio.timeout(STALLED_FOR):
                    await outgoing.drain()
                await reader.news(self._beat_every)
        finally:
            gone.cancel()
            await asyncio.wait({gone})  # how it ended does not matter: a reset is an end too
            if reader in self._readers:
                self._readers.remove(reader)

    def _note(self, changed: frozenset[int] | None) -> None:
        for reader in self._readers:
            reader.note(changed)

    def _next_line(self, reader: _Reader) -> Line:
        changed = reader.take()
        workers = self._roster.workers
        if changed is None:
            return Line("snapshot", workers)
        return Line("update", tuple(workers[i] for i in sorted(changed))) if changed else Line("beat")


class _Reader:
    """What one launcher has not received yet: some indexes, or None for everything."""

    def __init__(self, transport: asyncio.WriteTransport) -> None:
        self.transport = transport
        self._unsent: set[int] | None = None
        self._news = asyncio.Event()

    def note(self, changed: frozenset[int] | None) -> None:
        if changed is None:
            self._unsent = None
        elif self._unsent is not None:
            self._unsent |= changed
        if changed is None or changed:
            self._news.set()

    def take(self) -> set[int] | None:
        unsent, self._unsent = self._unsent, set()
        self._news.clear()
        return unsent

    async def news(self, within: float) -> None:
        """Return when there is something to send, the launcher is gone, or `within` seconds have passed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._news.wait()

    def wake(self) -> None:
        self._news.set()
