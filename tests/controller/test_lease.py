"""The leader's Lease under load. A script answers for the API server: a real one answers too fast."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from aiohttp import web

from mpiboot.controller import settings
from mpiboot.controller.operator_process import Replica
from mpiboot.kube import kinds
from mpiboot.kube.api import Api
from mpiboot.kube.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

SLOTS = 4
LEASE_SECONDS = 3  # the leader gives up when it could not renew for two thirds of that
LASTS = 6.0


class SlowServer:
    """Takes a second for a pod, and no time for a Lease."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] = {}
        self.renewals = 0

    async def answer(self, request: web.Request) -> web.Response:
        if "/leases" not in request.path:
            await asyncio.sleep(1)
            return web.json_response({})
        if request.method in {"POST", "PUT"}:
            self.lease = await request.json()
            self.renewals += 1
        if not self.lease:
            return web.json_response({"code": 404}, status=404)
        return web.json_response(self.lease)


async def headers() -> Mapping[str, str]:
    return {}


def test_the_lease_is_renewed_while_every_slot_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    server = SlowServer()

    def ends(code: int) -> None:
        raise AssertionError(f"the leader gave up with exit code {code}, after {server.renewals} renewals")

    monkeypatch.setattr(os, "_exit", ends)

    async def main() -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", server.answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        connection = Connection(f"http://127.0.0.1:{runner.addresses[0][1]}", None, headers, "default")
        try:
            async with Api(connection, SLOTS) as api, asyncio.TaskGroup() as group:
                load = [group.create_task(api.get(kinds.POD, "default", "a")) for _ in range(10 * SLOTS)]
                replica = Replica(api, settings.make({"lease_seconds": LEASE_SECONDS}))
                leading = group.create_task(replica._lead())
                await asyncio.wait({leading}, timeout=LASTS)
                for task in (leading, *load):
                    task.cancel()
        finally:
            await runner.cleanup()

    asyncio.run(main())
    assert server.renewals > LASTS / LEASE_SECONDS
