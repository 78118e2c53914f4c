"""A real server in a thread of its own, on a free port of the loopback; it can be stopped and started again."""

from __future__ import annotations

import asyncio
import select
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import pytest

from mpiboot.checkin.authority import Credentials
from mpiboot.checkin.client import Report, Snapshot, Stream
from mpiboot.checkin.roster import Pod, View
from mpiboot.checkin.server import CheckinServer

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping

T = TypeVar("T")

JOB, TOKEN = "default/pi", "t0ken"
PATIENCE = 60.0  # seconds: only ever used up by a test that fails


def report(port: int = 2222, uid: str = "", start: str = "") -> Report:
    return Report("10.0.0.1", port, "mpiuser", uid, start)


def view(size: int, pods: Mapping[int, Pod] | None = None) -> View:
    return View(tuple(f"pi-worker-{i}" for i in range(size)), pods or {})


@dataclass
class Jobs:
    """An authority over a dictionary; counts its questions, and fails or waits when told to."""

    credentials_of: dict[str, Credentials] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    broken: bool = False
    answering: threading.Event = field(default_factory=threading.Event)

    def add(self, job: str, token: str, size: int, uid: str = "u1") -> None:
        self.credentials_of[job] = Credentials(uid, token)
        self.views[job] = view(size)

    async def credentials(self, job: str) -> Credentials | None:
        self.asked.append(job)
        while not self.answering.is_set():
            await asyncio.sleep(0.01)
        if self.broken:
            raise RuntimeError("no API server")
        return self.credentials_of.get(job)

    def view(self, job: str) -> View | None:
        return self.views.get(job)


class Served:
    """A server and the loop it lives in."""

    def __init__(self, jobs: Jobs, host: str = "127.0.0.1", port: int = 0, **settings: object) -> None:
        self.log: list[str] = []
        self.host = host
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.server: CheckinServer = self.call(lambda: CheckinServer(jobs, log=self.log.append, **settings))  # type: ignore[arg-type]
        self.port = self._finish(self.server.start(host, port))

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def call(self, function: Callable[[], T]) -> T:
        async def called() -> T:
            return function()

        return self._finish(called())

    def observe(self, seen: View, job: str = JOB) -> None:
        self.call(lambda: self.server.observe(job, seen))

    def connections(self) -> int:
        return self.call(lambda: len(self.server._connections))

    def stop(self) -> None:
        if self._loop.is_closed():
            return
        self._finish(self.server.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    def _finish(self, coroutine: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(PATIENCE)


@pytest.fixture
def jobs() -> Jobs:
    jobs = Jobs()
    jobs.add(JOB, TOKEN, size=2)
    jobs.answering.set()
    return jobs


@pytest.fixture
def serve(jobs: Jobs) -> Iterator[Callable[..., Served]]:
    """Starts servers over the same jobs; stops them all."""
    started: list[Served] = []

    def start(**settings: object) -> Served:
        started.append(Served(jobs, **settings))  # type: ignore[arg-type]
        return started[-1]

    yield start
    jobs.answering.set()
    for served in started:
        served.stop()


@pytest.fixture
def served(serve: Callable[..., Served]) -> Served:
    return serve()


@pytest.fixture
def listen() -> Iterator[Callable[..., Stream]]:
    """Opens streams; closes them all."""
    opened: list[Stream] = []

    def start(*urls: str, job: str = JOB, token: str = TOKEN, **settings: float) -> Stream:
        opened.append(Stream(urls, job, token, **settings))
        return opened[-1]

    yield start
    for stream in opened:
        stream.close()


def until(stream: Stream, wanted: Callable[[Snapshot], bool]) -> Snapshot:
    """The first snapshot that is as wanted, waiting on the descriptor alone, as a launcher does."""
    end = time.monotonic() + PATIENCE
    while not wanted(stream.latest):
        readable, _, _ = select.select([stream], [], [], max(0.0, end - time.monotonic()))
        assert readable, f"still {stream.latest}"
        stream.poll()
    return stream.latest


def states(snapshot: Snapshot) -> list[str]:
    return [worker.state for worker in snapshot.workers]


def eventually(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "never came true"
        time.sleep(0.005)
