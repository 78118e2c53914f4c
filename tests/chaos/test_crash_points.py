"""The operator dies after each single write to the API server, and its successor brings the job to the same end.

A write counts when the API server has done it: the operator dies before it gets the answer. `make chaos` tries every
point; a test run tries a few.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

import pytest

from mpiboot.kube.api import Api
from mpiboot.kube.connection import connect
from tests.chaos.lives import LIVES, Operator, end_of, said, somewhere
from tests.chaos.proxy import Call, Proxy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiohttp import web
    from cluster.fixtures import Kubernetes

    from mpiboot.kube.connection import Connection
    from tests.chaos.lives import Object, User
    from tests.controller.conftest import Client

    Life = Callable[[User], Awaitable[None]]

ALL = bool(os.environ.get("MPIBOOT_CHAOS"))
AT_ONCE = 4  # namespaces, each with an operator of its own
SAMPLE = 14  # without `make chaos`, one of so many points


class Counting(Proxy):
    """Ends the operator after a given write."""

    def __init__(self, server: Connection, last: int | None) -> None:
        super().__init__(server)
        self.writes: list[str] = []
        self.dies = asyncio.Event()
        self._last = last

    async def after(self, call: Call, status: int, body: bytes) -> web.StreamResponse | None:
        assert body is not None
        if call.writes and self.open:
            self.writes.append(f"{call} -> {status}")
            if len(self.writes) == self._last:
                self.open = False
                self.dies.set()
        return None


async def lived(api: Api, server: Connection, life: Life, last: int | None) -> tuple[list[str], Object, set[str]]:
    """One life: the writes of the first operator, how the job ended, and the events about it."""
    async with somewhere(api) as user, Counting(server, last) as proxy:
        assert isinstance(proxy, Counting)
        operator = Operator(proxy, user.namespace)
        operator.start()
        living = asyncio.ensure_future(life(user))
        dying = asyncio.create_task(proxy.dies.wait())
        await asyncio.wait({living, dying}, return_when=asyncio.FIRST_COMPLETED)
        if proxy.dies.is_set():
            await operator.kill()
            operator.start()
        else:
            dying.cancel()
        await living
        end = await settled(user)
        events = await said(user)
        await operator.kill()
        return proxy.writes[:last], end, events


async def settled(user: User) -> Object:
    """The end, when it has not changed for a second."""
    last, same = await end_of(user), 0
    while same < 10:
        await asyncio.sleep(0.1)
        now = await end_of(user)
        last, same = now, same + 1 if now == last else 0
    return last


@pytest.mark.timeout(1200)
def test_after_a_crash_at_any_write_the_next_operator_brings_the_job_to_the_same_end(
    api_server: Kubernetes, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    assert client.ask("GET", "/readyz").ok
    points: list[str] = []
    wrong: list[str] = []

    async def main() -> None:
        server = await connect(str(api_server.kubeconfig))
        slots = asyncio.Semaphore(AT_ONCE)

        async def point(api: Api, life: Life, last: int, expected: tuple[Object, set[str]]) -> None:
            async with slots:
                writes, end, events = await lived(api, server, life, last)
            if len(writes) < last:
                return  # this time the operator needed fewer writes
            points.append(f"{life.__name__} {last}: {writes[-1]}")
            if end != expected[0]:
                wrong.append(f"{points[-1]}: ended as {end}, and not as {expected[0]}")
            if not expected[1] <= events:
                wrong.append(f"{points[-1]}: no event {expected[1] - events}")

        async with Api(server) as api:
            for life in LIVES:
                async with slots:
                    writes, end, events = await lived(api, server, life, None)
                every = range(1, len(writes) + 1) if ALL else range(2 + LIVES.index(life), len(writes) + 1, SAMPLE)
                await asyncio.gather(*(point(api, life, last, (end, events)) for last in every))

    asyncio.run(main())
    with capsys.disabled():
        sys.stdout.write(f"\ncrash points: {len(points)}, wrong ends: {len(wrong)}\n")
    assert not wrong, "\n".join(wrong)
    assert len(points) >= (60 if ALL else 5)
