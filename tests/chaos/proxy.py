"""A way from the operator to a real API server on which a test counts, cuts, delays and changes what passes."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp
import yarl
from aiohttp import web

from mpiboot.kube.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Mapping

WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
KEPT = ("content-type", "retry-after")  # headers of an answer that clients read


@dataclass(frozen=True)
class Call:
    """A request of the operator. `times`: how many with the same method and path came before it."""

    method: str
    path: str
    watch: bool
    times: int

    @property
    def writes(self) -> bool:
        return self.method in WRITES

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class CutError(Exception):
    """Raised by `before` and `after` to end the connection without an answer."""


class Proxy:
    """Passes everything on. Subclasses decide otherwise in `before`, `after` and `line`."""

    def __init__(self, server: Connection) -> None:
        self._server = server
        self._times: dict[tuple[str, str], int] = {}
        self.open = True  # while it is not, every request and every watch ends without an answer

    async def __aenter__(self) -> Proxy:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._server.tls or True, limit=0), read_bufsize=2**18
        )
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{path:.*}", self._pass)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()
        await self._session.close()

    @property
    def connection(self) -> Connection:
        """What an operator needs that goes through this proxy."""

        async def headers() -> Mapping[str, str]:
            return {}

        port = self._runner.addresses[0][1]
        return Connection(f"http://127.0.0.1:{port}", None, headers, self._server.namespace)

    def _shut(self) -> bool:
        return not self.open

    async def before(self, _: Call) -> web.StreamResponse | None:
        """An answer instead of the server's; None: pass the request on."""
        return None

    async def after(self, _: Call, status: int, body: bytes) -> web.StreamResponse | None:
        """The server has done it: another answer than its own, or None."""
        assert status
        assert body is not None
        return None

    def lines(self, _: Call, line: bytes) -> list[bytes] | None:
        """What a watch brings instead of this line; None: the watch is cut."""
        return [line]

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except CutError:
            return cut(request)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        key = (request.method, request.path)
        call = Call(*key, "watch" in request.query, self._times.get(key, 0))
        self._times[key] = call.times + 1
        if self._shut():
            return cut(request)
        if (instead := await self.before(call)) is not None:
            return instead
        url = yarl.URL(self._server.server + request.raw_path, encoded=True)
        kept = {name: value for name in ("accept", "content-type") if (value := request.headers.get(name))}
        headers = {**kept, **await self._server.headers()}
        body = await request.read()
        async with self._session.request(request.method, url, data=body or None, headers=headers) as answer:
            found = {name: value for name in KEPT if (value := answer.headers.get(name))}
            if call.watch and answer.status == 200:
                return await self._stream(request, call, answer, found)
            text = await answer.read()
            if (instead := await self.after(call, answer.status, text)) is not None:
                return instead
            if self._shut():
                return cut(request)
            return web.Response(status=answer.status, body=text, headers=found)

    async def _stream(
        self, request: web.Request, call: Call, answer: aiohttp.ClientResponse, headers: dict[str, Any]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        rest = b""
        with contextlib.suppress(ConnectionError):
            async for chunk in answer.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    instead = self.lines(call, line) if not self._shut() else None
                    if instead is None:
                        return cut(request)
                    for each in instead:
                        await response.write(each + b"\n")
        return response


def cut(request: web.Request) -> web.StreamResponse:
    """End the connection without an answer."""
    if request.transport:
        request.transport.abort()
    return web.Response()


async def hang(seconds: float) -> web.StreamResponse:
    """A connection on which nothing comes, as after the death of a node."""
    await asyncio.sleep(seconds)
    return web.Response(status=504)
