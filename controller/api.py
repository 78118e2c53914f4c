"""HTTP with an API server: JSON in, JSON out, each request with a time-out. Raw dictionaries, for speed."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp

from mpiboot import __version__
from mpiboot.controller.api_error import ApiError, UnreachableError, from_answer, from_status

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from mpiboot.controller.connection import Connection
    from mpiboot.controller.kinds import Kind

Object = dict[str, Any]

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

THROTTLED_TRIES = 8  # then the caller's own back-off takes over
PAGE = 500  # objects of one answer to a list
WATCH_SECONDS = 240  # then the server ends a watch and we begin another
REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=30)
# Longer than any watch lives: a connection silent for that long is dead.
WATCH_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=WATCH_SECONDS + 60)
NO_ANSWER = (aiohttp.ClientError, TimeoutError, OSError)


@dataclass(frozen=True)
class Request:
    """A call as a value."""

    method: str
    path: str
    params: Mapping[str, str] | None = None
    body: object = None
    form: str = "application/json"
    timeout: aiohttp.ClientTimeout = REQUEST_TIMEOUT


class Api:
    """A client. At most `concurrency` requests run at once, watches not counted."""

    def __init__(self, connection: Connection, concurrency: int = 64) -> None:
        self.connection = connection
        self._session: aiohttp.ClientSession | None = None
        self._slots = asyncio.Semaphore(concurrency)

    async def __aenter__(self) -> Api:
        tls = self.connection.tls
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=tls or True, limit=0, keepalive_timeout=60),
            headers={"user-agent": f"mpiboot/{__version__}", "accept": "application/json"},
            read_bufsize=2**18,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        return await self.send(Request("GET", kind.path(namespace, name)))

    async def create(self, kind: Kind, namespace: str, manifest: Mapping[str, Any]) -> Object:
        return await self.send(Request("POST", kind.path(namespace), body=manifest))

    async def replace(
        self, kind: Kind, namespace: str, name: str, manifest: Mapping[str, Any], *, subresource: str = ""
    ) -> Object:
        return await self.send(Request("PUT", kind.path(namespace, name, subresource), body=manifest))

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: object, *, form: str = MERGE, subresource: str = ""
    ) -> Object:
        return await self.send(Request("PATCH", kind.path(namespace, name, subresource), body=patch, form=form))

    async def delete(self, kind: Kind, namespace: str, name: str, uid: str, *, propagation: str = "Background") -> None:
        """Delete the object of this uid; one of that name made since is left alone, and a missing one is fine."""
        options = {"preconditions": {"uid": uid}, "propagationPolicy": propagation}
        try:
            await self.send(Request("DELETE", kind.path(namespace, name), body=options))
        except ApiError as error:
            if not (error.not_found or error.conflict):
                raise

    async def pages(self, kind: Kind, namespace: str = "", **params: str) -> AsyncIterator[tuple[list[Object], str]]:
        """A list, page by page: the objects, and the version at which to start watching."""
        query = {**params, "limit": str(PAGE)}
        while True:
            answer = await self.send(Request("GET", kind.path(namespace), query))
            meta = answer["metadata"]
            yield answer.get("items") or [], meta["resourceVersion"]
            if not meta.get("continue"):
                return
            query["continue"] = meta["continue"]

    async def watch(self, kind: Kind, namespace: str, version: str, **params: str) -> AsyncIterator[tuple[str, Object]]:
        """Changes after `version`, until the server ends the watch; `ApiError.expired` if it is too old."""
        seconds = WATCH_SECONDS + random.randrange(30)  # noqa: S311 (spreads load)
        more = {"watch": "1", "allowWatchBookmarks": "true", "resourceVersion": version, "timeoutSeconds": str(seconds)}
        request = Request("GET", kind.path(namespace), {**params, **more}, timeout=WATCH_TIMEOUT)
        try:
            async with await self._answer(request) as answer:
                async for line in _lines(answer.content):
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        raise from_status(event["object"])
                    yield event["type"], event["object"]
        except NO_ANSWER as error:
            raise UnreachableError(f"watch of {kind.plural}: {_why(error)}") from error

    async def text(self, path: str, **params: str) -> AsyncIterator[bytes]:
        """The answer's bytes as they come, for as long as they come: a pod's log."""
        request = Request("GET", path, params, timeout=aiohttp.ClientTimeout(total=None, sock_connect=30))
        try:
            async with await self._answer(request) as answer:
                async for chunk in answer.content.iter_any():
                    yield chunk
        except NO_ANSWER as error:
            raise UnreachableError(f"GET {path}: {_why(error)}") from error

    async def send(self, request: Request) -> Object:
        """The answer's object. Waits as the server says when it is throttled; nothing else is tried again here."""
        for attempt in range(THROTTLED_TRIES):
            try:
                async with self._slots, await self._answer(request) as answer:
                    result: Object = json.loads(await answer.read())
                    return result
            except ApiError as error:
                # A throttled request was refused before it did anything, so repeating it is safe.
                if not error.throttled or attempt == THROTTLED_TRIES - 1:
                    raise
                await asyncio.sleep((error.retry_after or 1.0) * random.uniform(0.5, 1.5))  # noqa: S311 (spreads load)
            except NO_ANSWER as error:
                raise UnreachableError(f"{request.method} {request.path}: {_why(error)}") from error
        raise AssertionError("the last try raises or returns")

    async def _answer(self, request: Request) -> aiohttp.ClientResponse:
        assert self._session, "used outside `async with`"
        headers = dict(await self.connection.headers())
        data = None
        if request.body is not None:
            headers["content-type"] = request.form
            data = json.dumps(request.body, separators=(",", ":")).encode()
        answer = await self._session.request(
            request.method,
            self.connection.server + request.path,
            params=request.params,
            data=data,
            headers=headers,
            proxy=self.connection.proxy,
            timeout=request.timeout,
        )
        if answer.status >= 400:
            async with answer:
                raise from_answer(answer.status, await answer.read(), answer.headers.get("retry-after"))
        return answer


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__


async def _lines(stream: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Lines of any length: aiohttp's own reader refuses the long ones of big objects."""
    rest = b""
    async for chunk in stream.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line:
                yield line
