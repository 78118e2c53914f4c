"""What the operator does when an API server throttles, forgets, hangs up or is away.

A real one cannot be made to do that on demand, so these tests script one. It speaks HTTP, and the client is real.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from mpiboot.controller import kinds
from mpiboot.controller.api import Api
from mpiboot.controller.api_error import ApiError, UnreachableError
from mpiboot.controller.cache import Cache
from mpiboot.controller.connection import Connection
from mpiboot.controller.view import config_map_view

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mpiboot.controller.view import ObjectView

PATIENCE = 60.0


def config_map(name: str, version: int, value: str = "") -> dict[str, Any]:
    labels = {"training.kubeflow.org/job-name": "job"}
    named = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": labels}
    metadata = {**named, "resourceVersion": str(version)}
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": {"value": value}}


class Scripted:
    """An API server of ConfigMaps. Each list and each watch takes the next item of its script."""

    def __init__(self) -> None:
        self.lists: list[tuple[list[dict[str, Any]], int]] = []
        self.watches: list[list[dict[str, Any]]] = []
        self.refusals: list[web.Response] = []
        self.asked: list[Mapping[str, str]] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append({**request.query, "method": request.method})
        if self.refusals:
            return self.refusals.pop(0)
        if "watch" not in request.query:
            items, version = self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]
            return web.json_response({"metadata": {"resourceVersion": str(version)}, "items": items})
        response = web.StreamResponse()
        await response.prepare(request)
        if not self.watches:
            await asyncio.sleep(PATIENCE)
        for event in self.watches.pop(0):
            await response.write(json.dumps(event).encode() + b"\n")
        return response

    def run(self, use: Callable[[Api, Scripted], Awaitable[None]]) -> None:
        async def main() -> None:
            app = web.Application()
            app.router.add_route("*", "/{path:.*}", self.answer)
            runner = web.AppRunner(app, shutdown_timeout=0.1)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            port = runner.addresses[0][1]

            async def headers() -> Mapping[str, str]:
                return {}

            connection = Connection(f"http://127.0.0.1:{port}", None, headers, "default")
            try:
                async with asyncio.timeout(PATIENCE), Api(connection) as api:
                    await use(api, self)
            finally:
                await runner.cleanup()

        asyncio.run(main())


def refusals(times: int, status: int, reason: str, headers: Mapping[str, str] | None = None) -> list[web.Response]:
    body = {"kind": "Status", "code": status, "reason": reason, "message": "scripted"}
    return [web.json_response(body, status=status, headers=headers) for _ in range(times)]


async def watching(api: Api, until: Callable[[Cache[ObjectView]], bool]) -> Cache[ObjectView]:
    """A cache at the moment when it looks as wanted."""
    news = asyncio.Event()
    cache: Cache[ObjectView] = Cache(api, kinds.CONFIG_MAP, config_map_view, lambda _: news.set())
    task = asyncio.create_task(cache.run())
    try:
        while not until(cache):
            news.clear()
            await news.wait()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    return cache


def names(cache: Cache[ObjectView]) -> set[str]:
    return set(cache.of("default/job"))


def test_a_throttled_request_is_made_again_when_the_server_says() -> None:
    server = Scripted()
    server.refusals = refusals(3, 429, "TooManyRequests", {"retry-after": "1"})
    server.lists = [([], 1)]

    async def use(api: Api, server: Scripted) -> None:
        async for items, version in api.pages(kinds.CONFIG_MAP):
            assert (items, version) == ([], "1")
        assert len(server.asked) == 4

    server.run(use)


@pytest.mark.parametrize("status", [403, 409, 422, 500])
def test_nothing_else_is_tried_again_behind_the_callers_back(status: int) -> None:
    server = Scripted()
    server.refusals = refusals(9, status, "Scripted")

    async def use(api: Api, server: Scripted) -> None:
        with pytest.raises(ApiError, match="scripted") as caught:
            await api.create(kinds.CONFIG_MAP, "default", config_map("a", 1))
        assert caught.value.status == status
        assert len(server.asked) == 1

    server.run(use)


def test_an_answer_that_is_no_kubernetes_object_is_told_too() -> None:
    server = Scripted()
    server.refusals = [web.Response(status=502, text="<html>a proxy</html>")]

    async def use(api: Api, _: Scripted) -> None:
        with pytest.raises(ApiError, match="a proxy"):
            await api.get(kinds.CONFIG_MAP, "default", "a")

    server.run(use)


def test_a_watch_that_ends_goes_on_where_it_was() -> None:
    server = Scripted()
    server.lists = [([config_map("a", 5)], 10)]
    server.watches = [
        [{"type": "ADDED", "object": config_map("b", 11)}],
        [{"type": "DELETED", "object": config_map("a", 12)}],
        [{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "20"}}}],
        [{"type": "ADDED", "object": config_map("c", 21)}],
    ]

    async def use(api: Api, server: Scripted) -> None:
        cache = await watching(api, lambda cache: "c" in names(cache))
        assert names(cache) == {"b", "c"}
        versions = [asked["resourceVersion"] for asked in server.asked if "watch" in asked]
        assert versions[:4] == ["10", "11", "12", "20"]

    server.run(use)


def test_after_a_version_has_expired_all_is_listed_again() -> None:
    server = Scripted()
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
    server.lists = [([config_map("a", 5), config_map("b", 6)], 10), ([config_map("b", 6), config_map("c", 15)], 20)]
    server.watches = [[{"type": "ERROR", "object": gone}]]

    async def use(api: Api, _: Scripted) -> None:
        cache = await watching(api, lambda cache: "c" in names(cache) and "a" not in names(cache))
        assert names(cache) == {"b", "c"}

    server.run(use)


def test_a_server_that_is_away_is_tried_again() -> None:
    server = Scripted()
    server.refusals = refusals(2, 503, "ServiceUnavailable")
    server.lists = [([config_map("a", 5)], 10)]

    async def use(api: Api, _: Scripted) -> None:
        assert names(await watching(api, lambda cache: "a" in names(cache))) == {"a"}

    server.run(use)


def test_a_port_where_nobody_listens_is_said_to_be_unreachable() -> None:
    async def main() -> None:
        async def headers() -> Mapping[str, str]:
            return {}

        async with Api(Connection("http://127.0.0.1:1", None, headers, "default")) as api:
            with pytest.raises(UnreachableError, match="/api/v1/namespaces/default/configmaps/a"):
                await api.get(kinds.CONFIG_MAP, "default", "a")

    asyncio.run(main())


def test_late_news_never_replace_newer_ones() -> None:
    server = Scripted()
    server.lists = [([config_map("a", 5, "old")], 10)]

    async def use(api: Api, _: Scripted) -> None:
        cache = await watching(api, lambda cache: "a" in names(cache))
        cache.put(config_map("a", 12, "new"))
        newest = cache.of("default/job")["a"]
        cache.put(config_map("a", 11, "late"))
        assert cache.of("default/job")["a"] == newest

    server.run(use)


def test_an_answer_to_an_own_write_does_not_bring_a_deleted_object_back() -> None:
    server = Scripted()
    server.lists = [([config_map("a", 5)], 10)]
    server.watches = [[{"type": "DELETED", "object": config_map("a", 14)}]]

    async def use(api: Api, _: Scripted) -> None:
        cache = await watching(api, lambda cache: cache.synced.is_set() and not names(cache))
        cache.put(config_map("a", 13))
        assert names(cache) == set()

    server.run(use)
