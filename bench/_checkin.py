"""A check-in server in a thread, for one job."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mpiboot.checkin.authority import Credentials
from mpiboot.checkin.client import Report, post
from mpiboot.checkin.roster import Pod, View
from mpiboot.checkin.server import CheckinServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

JOB, TOKEN = "bench/job", "bench"


class Served:
    """The running server, which is also its own authority: it knows one job, whose workers are pending."""

    def __init__(self, names: Sequence[str]) -> None:
        self._view = View(tuple(names), {i: Pod("pending", reason="not scheduled yet") for i in range(len(names))})
        self.port = 0

    async def credentials(self, job: str) -> Credentials | None:
        return Credentials("", TOKEN) if job == JOB else None

    def view(self, _: str) -> View:
        return self._view

    @property
    def environ(self) -> dict[str, str]:
        """The environment variables with which a launcher finds this server."""
        return {"MPIBOOT_CHECKIN": self._url, "MPIBOOT_JOB": JOB, "MPIBOOT_TOKEN": TOKEN}

    def check_in(self, index: int, address: str, port: int) -> None:
        posted = post([self._url], JOB, index, Report(address, port, "root"), TOKEN, time.monotonic() + 10)
        if not posted.accepted:
            raise RuntimeError(posted.failures)

    @property
    def _url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def serving(names: Sequence[str]) -> Iterator[Served]:
    served, loop = Served(names), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = CheckinServer(served)
    try:
        served.port = asyncio.run_coroutine_threadsafe(server.start("127.0.0.1"), loop).result(10)
        yield served
    finally:
        asyncio.run_coroutine_threadsafe(server.close(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
