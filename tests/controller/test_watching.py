"""What the operator does when an API server throttles, drops versions, disconnects or does not answer.

No real API server does that on demand, so a script answers over HTTP. The client is real.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import web

from mpiboot.controller.cache import Cache
from mpiboot.kube import api as api_module
from mpiboot.kube import kinds
from mpiboot.kube.api import WATCH_TIMEOUT, Api
from mpiboot.kube.api_error import ApiError, UnreachableError, from_answer, from_status
from mpiboot.kube.connection import Connection
from mpiboot.kube.projections import config_map_view

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mpiboot.kube.projections import ObjectView

PATIENCE = 60.0


def config_map(name: str, version: int, value: str = "") -> dict[str, Any]:
    labels = {"training.kubeflow.org/job-name": "job"}
    named = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": labels}
    metadata = {**named, "resourceVersion": str(version)}
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": {"value": value}}


class Scripted:
    """An API server of ConfigMaps. Each list and each watch takes the next item of its script."""

    def __init__(self) -> None:
        self.ends_at_once = False  # every watch without a script does
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
        if not self.watches and self.ends_at_once:
            return response
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


async def asked_within(api: Api, server: Scripted, seconds: float) -> list[Mapping[str, str]]:
    """The requests of a cache in its first seconds."""
    cache: Cache[ObjectView] = Cache(api, kinds.CONFIG_MAP, config_map_view, lambda _: None)
    task = asyncio.create_task(cache.run())
    await asyncio.sleep(seconds)
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return server.asked


async def watching(api: Api, until: Callable[[Cache[ObjectView]], bool]) -> Cache[ObjectView]:
    """A cache, once `until` is true of it."""
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
def test_no_other_refusal_is_retried_without_the_caller(status: int) -> None:
    server = Scripted()
    server.refusals = refusals(9, status, "Scripted")

    async def use(api: Api, server: Scripted) -> None:
        with pytest.raises(ApiError, match="scripted") as caught:
            await api.create(kinds.CONFIG_MAP, "default", config_map("a", 1))
        assert caught.value.status == status
        assert len(server.asked) == 1

    server.run(use)


def test_an_answer_that_is_no_kubernetes_object_is_in_the_error() -> None:
    server = Scripted()
    server.refusals = [web.Response(status=502, text="<html>a proxy</html>")]

    async def use(api: Api, _: Scripted) -> None:
        with pytest.raises(ApiError, match="a proxy"):
            await api.get(kinds.CONFIG_MAP, "default", "a")

    server.run(use)


PAGE = "<html>log in first</html>"


@pytest.mark.parametrize("text", [PAGE, "[]", "1", "", "\xff"])
def test_an_answer_that_is_not_an_object_counts_as_no_answer(text: str) -> None:
    server = Scripted()
    server.refusals = [web.Response(body=text.encode("latin-1")) for _ in range(2)]

    async def use(api: Api, _: Scripted) -> None:
        with pytest.raises(UnreachableError, match="no JSON"):
            await api.get(kinds.CONFIG_MAP, "default", "a")
        # A watch may end without a change.
        with pytest.raises(UnreachableError if text else StopAsyncIteration):
            await anext(api.watch(kinds.CONFIG_MAP, "default", "1"))

    server.run(use)


@pytest.mark.parametrize("line", [{"type": "ADDED"}, {"object": "a"}, {"type": "ERROR", "object": None}], ids=str)
def test_a_line_of_a_watch_without_an_object_ends_the_watch(line: dict[str, Any]) -> None:
    server = Scripted()
    server.watches = [[line]]

    async def use(api: Api, _: Scripted) -> None:
        with pytest.raises(UnreachableError, match="what came is no change"):
            await anext(api.watch(kinds.CONFIG_MAP, "default", "1"))

    server.run(use)


@pytest.mark.parametrize(
    ("header", "details", "pause"),
    [
        ("3", {}, 3.0),
        ("86400", {}, 60.0),
        ("\u00b2", {}, None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", {}, None),
        (None, {"retryAfterSeconds": 5}, 5.0),
        (None, {"retryAfterSeconds": 10**9}, 60.0),
        (None, {"retryAfterSeconds": -1}, None),
        (None, {"retryAfterSeconds": "soon"}, None),
        (None, "none", None),
    ],
)
def test_the_pause_that_a_server_asks_for_is_bounded(header: str | None, details: object, pause: float | None) -> None:
    body = json.dumps({"kind": "Status", "code": 429, "details": details}).encode()
    assert from_answer(429, body, header).retry_after == pause


def test_a_status_with_a_strange_code_is_an_error_of_the_server() -> None:
    assert from_status({"code": "many"}).status == 500


def test_a_watch_that_ends_continues_at_its_version() -> None:
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


def test_a_server_that_does_not_answer_is_retried() -> None:
    server = Scripted()
    server.refusals = refusals(2, 503, "ServiceUnavailable")
    server.lists = [([config_map("a", 5)], 10)]

    async def use(api: Api, _: Scripted) -> None:
        assert names(await watching(api, lambda cache: "a" in names(cache))) == {"a"}

    server.run(use)


def test_a_closed_port_is_reported_as_unreachable() -> None:
    async def main() -> None:
        async def headers() -> Mapping[str, str]:
            return {}

        async with Api(Connection("http://127.0.0.1:1", None, headers, "default")) as api:
            with pytest.raises(UnreachableError, match="/api/v1/namespaces/default/configmaps/a"):
                await api.get(kinds.CONFIG_MAP, "default", "a")

    asyncio.run(main())


def test_a_late_change_never_replaces_a_newer_one() -> None:
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


def test_watches_that_end_at_once_are_begun_again_with_growing_pauses() -> None:
    server = Scripted()
    server.lists, server.ends_at_once = [([], 10)], True

    async def use(api: Api, server: Scripted) -> None:
        asked = await asked_within(api, server, 2.0)
        # At 0, 0.2, 0.6 and 1.4 s, or a quarter earlier.
        assert 2 <= len([each for each in asked if "watch" in each]) <= 6
        assert len([each for each in asked if "watch" not in each]) == 1

    server.run(use)


def test_watches_that_end_after_one_change_are_not_begun_again_at_once() -> None:
    server = Scripted()
    server.lists, server.ends_at_once = [([], 10)], True
    server.watches = [[{"type": "ADDED", "object": config_map("a", 11)}] for _ in range(1000)]

    async def use(api: Api, server: Scripted) -> None:
        assert 2 <= len(await asked_within(api, server, 2.0)) <= 7

    server.run(use)


def test_a_watch_that_brings_nothing_for_longer_than_the_server_keeps_it_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As behind a proxy that keeps the connection when its server is gone."""
    monkeypatch.setattr(api_module, "WATCH_TIMEOUT", aiohttp.ClientTimeout(total=None, sock_read=1))
    assert WATCH_TIMEOUT.sock_read is not None
    assert api_module.WATCH_SECONDS < WATCH_TIMEOUT.sock_read < 60
    server = Scripted()
    server.lists = [([], 10)]

    async def use(api: Api, server: Scripted) -> None:
        cache: Cache[ObjectView] = Cache(api, kinds.CONFIG_MAP, config_map_view, lambda _: None)
        task = asyncio.create_task(cache.run())
        while len([asked for asked in server.asked if "watch" in asked]) < 2:
            await asyncio.sleep(0.05)
        task.cancel()

    server.run(use)


@pytest.mark.parametrize("refusal", [
    lambda: refusals(1, 410, "Expired"),
    lambda: [web.Response(text="<html>a proxy</html>")],
    lambda: [web.json_response([1, 2])],
    lambda: [web.json_response({"metadata": {"resourceVersion": "x"}, "items": []})],
    lambda: [web.json_response({"metadata": {"resourceVersion": "1"}, "items": [[]]})],
], ids=["expired", "no JSON", "no object", "no version", "no list of objects"])  # fmt: skip
def test_lists_that_fail_are_asked_for_again_with_growing_pauses(refusal: Callable[[], list[web.Response]]) -> None:
    server = Scripted()
    server.refusals = [each for _ in range(100) for each in refusal()]

    async def use(api: Api, server: Scripted) -> None:
        assert 2 <= len(await asked_within(api, server, 2.0)) <= 6

    server.run(use)


def test_a_server_without_time_for_a_watch_is_not_asked_for_a_list() -> None:
    server = Scripted()
    server.lists = [([], 10)]

    async def use(api: Api, server: Scripted) -> None:
        cache: Cache[ObjectView] = Cache(api, kinds.CONFIG_MAP, config_map_view, lambda _: None)
        await cache._list()
        server.refusals = refusals(9, 429, "TooManyRequests", {"retry-after": "30"})
        cache._list = lambda: _version("10")  # type: ignore[method-assign]
        asked = len(server.asked)
        task = asyncio.create_task(cache.run())
        await asyncio.sleep(2.0)
        task.cancel()
        assert ["watch" in each for each in server.asked[asked:]] == [True]

    server.run(use)


async def _version(text: str) -> str:
    return text


def test_an_object_that_is_nested_too_deeply_does_not_hide_others() -> None:
    text = "[" * 900 + "1" + "]" * 900
    deep = json.dumps({**config_map("deep", 6), "odd": "?"}).replace('"?"', text)
    text = "[" * 5000 + "1" + "]" * 5000
    deeper = json.dumps({**config_map("deeper", 7), "odd": "?"}).replace('"?"', text)
    listed = '{"metadata": {"resourceVersion": "10"}, "items": [%s, %s, %s]}'
    server = Scripted()
    body = listed % (deep, deeper, json.dumps(config_map("a", 5)))
    server.refusals = [web.Response(text=body, content_type="application/json")]

    async def use(api: Api, _: Scripted) -> None:
        cache = await watching(api, lambda cache: "a" in names(cache))
        assert names(cache) == {"a", "deep", "deeper"}

    server.run(use)


def test_an_object_that_cannot_be_read_is_skipped_and_reported_until_it_goes() -> None:
    reported: list[str] = []

    def project(found: dict[str, Any]) -> ObjectView | None:
        if found["data"]["value"] == "bad":
            raise OverflowError("no number")
        return config_map_view(found)

    def unreadable(kind: kinds.Kind, found: dict[str, Any], error: Exception) -> None:
        reported.append(f"{kind.name} {found['metadata']['name']}: {error}")

    async def use(api: Api, _: Scripted) -> None:
        cache: Cache[ObjectView] = Cache(
            api, kinds.CONFIG_MAP, project, lambda _: None, unreadable=unreadable
        )  # fmt: skip
        cache.put(config_map("a", 5, "bad"))
        cache.put(config_map("b", 6))
        assert names(cache) == {"b"}
        assert reported == ["ConfigMap a: no number"]
        assert [found["metadata"]["name"] for found, _ in cache.skipped()] == ["a"]
        cache.put(config_map("b", 7, "bad"))
        assert names(cache) == {"b"}  # as it was
        cache._take("DELETED", config_map("b", 8, "bad"))
        cache._take("DELETED", config_map("a", 9, "bad"))
        assert (names(cache), cache.skipped()) == (set(), ())
        cache.put(config_map("a", 10))
        assert names(cache) == {"a"}

    Scripted().run(use)


def test_an_object_whose_label_names_another_job_now_is_only_that_jobs() -> None:
    async def use(api: Api, _: Scripted) -> None:
        changed: list[str] = []
        cache: Cache[ObjectView] = Cache(api, kinds.CONFIG_MAP, config_map_view, changed.append)
        cache.put(config_map("a", 5))
        moved = config_map("a", 6)
        moved["metadata"]["labels"] = {"training.kubeflow.org/job-name": "other"}
        cache.put(moved)
        assert (names(cache), set(cache.of("default/other"))) == (set(), {"a"})
        assert changed == ["default/job", "default/job", "default/other"]
        moved = config_map("a", 7)
        moved["metadata"]["labels"] = {}
        cache.put(moved)
        assert set(cache.of("default/other")) == set()

    Scripted().run(use)


def test_a_page_of_large_objects_is_asked_for_again_with_fewer_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpiboot.kube.api.LARGEST_ANSWER", 20_000)
    objects = [config_map(f"c{number}", number + 1, "x" * 3000) for number in range(10)]
    limits: list[int] = []

    class Paged(Scripted):
        async def answer(self, request: web.Request) -> web.StreamResponse:
            limit, first = int(request.query["limit"]), int(request.query.get("continue", "0"))
            limits.append(limit)
            left = {"continue": str(first + limit)} if first + limit < len(objects) else {}
            page = {"metadata": {"resourceVersion": "99", **left}, "items": objects[first : first + limit]}
            return web.json_response(page)

    async def use(api: Api, __: Scripted) -> None:
        pages = [len(items) async for items, _ in api.pages(kinds.CONFIG_MAP)]
        assert sum(pages) == len(objects)
        assert max(pages) <= 6
        assert limits[0] == 500
        objects.append(config_map("huge", 99, "x" * 30_000))
        with pytest.raises(UnreachableError, match="the answer has more than"):
            pages = [len(items) async for items, _ in api.pages(kinds.CONFIG_MAP)]

    Paged().run(use)
