"""HTTP with an API server: JSON in, JSON out, each request with a time-out. Raw dictionaries, for speed."""

from __future__ import annotations

import asyncio
import copy
import json
import math
import random
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp

from mpiboot import __version__
from mpiboot.kube import answers
from mpiboot.kube.api_error import (
    ApiError,
    NotLeadingError,
    TooLargeError,
    UnreachableError,
    from_answer,
    from_status,
)
from mpiboot.kube.kinds import MERGE
from mpiboot.kube.outage import Outage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from mpiboot.kube.connection import Connection
    from mpiboot.kube.kinds import Kind

Object = dict[str, Any]

THROTTLED_TRIES = 8  # then the caller's own back-off takes over
PAGE = 500  # objects of one answer to a list, or fewer where they are large
LARGEST_ANSWER = 16 * 2**20  # bytes; as objects they take five times as much memory
WATCH_SECONDS = 40  # then the server ends a watch, and we begin another one at the same version
CONNECT_TIMEOUT = 5  # seconds; the kernel repeats its question after 1 and 3 s, and much later after that
REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=30, sock_connect=CONNECT_TIMEOUT)
# Longer than any watch lives: the other side is gone, even if a proxy in between keeps the connection.
WATCH_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=WATCH_SECONDS + 15)
PROBE_TIMEOUT = aiohttp.ClientTimeout(total=3)
LOST_AFTER = 10  # seconds without a sign of life of the other side's kernel
NO_ANSWER = (aiohttp.ClientError, TimeoutError, OSError, answers.NotJsonError)


@dataclass(frozen=True)
class Request:
    """A call as a value."""

    method: str
    path: str
    params: Mapping[str, str] | None = None
    body: object = None
    form: str = "application/json"
    timeout: aiohttp.ClientTimeout = REQUEST_TIMEOUT
    accept: str = ""  # another form of the answer than JSON of the whole object


class Api:
    """A client. At most `concurrency` requests run at once, watches not counted."""

    def __init__(self, connection: Connection, concurrency: int = 64) -> None:
        self.connection = connection
        self._session: aiohttp.ClientSession | None = None
        self._slots = asyncio.Semaphore(concurrency)
        self._tries = THROTTLED_TRIES
        self._left: Callable[[], float] = lambda: math.inf
        self.outage = Outage()

    def apart(self) -> Api:
        """This client, inside its `async with`, with one slot of its own: its requests wait behind no others.

        A throttled request of it fails at once: its caller has no time to wait for the server.
        """
        other = copy.copy(self)
        other._slots, other._tries = asyncio.Semaphore(1), 1  # noqa: SLF001 (of the same class)
        return other

    def fenced(self, left: Callable[[], float]) -> Api:
        """This client, inside its `async with`, for `left()` seconds: no request begins or waits after that."""
        other = copy.copy(self)
        other._left = left  # noqa: SLF001 (of the same class)
        return other

    async def ready(self) -> bool:
        """Whether the API server is there and says that it is ready. One that hides this counts as ready."""
        try:
            status, _ = await self.apart().exchange(Request("GET", "/readyz", timeout=PROBE_TIMEOUT))
        except UnreachableError:
            return False
        return status < 500

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
        limit = PAGE
        query = dict(params)
        while True:
            try:
                answer = await self.send(Request("GET", kind.path(namespace), {**query, "limit": str(limit)}))
            except TooLargeError:
                if limit == 1:
                    raise
                limit //= 2
                continue
            meta, items = answer.get("metadata"), answer.get("items") or []
            if not isinstance(meta, dict) or "resourceVersion" not in meta or not isinstance(items, list):
                raise UnreachableError(f"list of {kind.plural}: the answer is no list")
            yield items, meta["resourceVersion"]
            if not meta.get("continue"):
                return
            query["continue"] = meta["continue"]

    def watch(self, kind: Kind, namespace: str, version: str, **params: str) -> AsyncIterator[tuple[str, Object]]:
        """Changes after `version`, until the server ends the watch. ApiError of status 410 if it is too old."""
        seconds = WATCH_SECONDS - random.randrange(10)  # noqa: S311 (spreads load)
        more = {"watch": "1", "allowWatchBookmarks": "true", "resourceVersion": version, "timeoutSeconds": str(seconds)}
        return self.changes(Request("GET", kind.path(namespace), {**params, **more}, timeout=WATCH_TIMEOUT))

    async def changes(self, request: Request) -> AsyncIterator[tuple[str, Object]]:
        """What a watch brings, each change as its type and its object."""
        try:
            async with await self._answer(request) as answer:
                async for line in _lines(answer.content):
                    event = await answers.parsed(line)
                    change, found = event.get("type"), event.get("object")
                    if not isinstance(change, str) or not isinstance(found, dict):
                        raise UnreachableError(f"watch of {request.path}: what came is no change")
                    if change == "ERROR":
                        raise from_status(found)
                    yield change, found
        except NO_ANSWER as error:
            self.outage.suspect()
            raise UnreachableError(f"watch of {request.path}: {_why(error)}") from error

    async def text(self, path: str, **params: str) -> AsyncIterator[bytes]:
        """The answer's bytes as they come, for as long as they come: a pod's log."""
        request = Request("GET", path, params, timeout=aiohttp.ClientTimeout(total=None, sock_connect=30))
        try:
            async with await self._answer(request) as answer:
                async for chunk in answer.content.iter_any():
                    yield chunk
        except NO_ANSWER as error:
            raise UnreachableError(f"GET {path}: {_why(error)}") from error

    async def upgraded(
        self, path: str, params: Sequence[tuple[str, str]], protocols: Sequence[str]
    ) -> aiohttp.ClientWebSocketResponse:
        """A connection in both directions. What goes wrong is aiohttp's own error."""
        assert self._session, "used outside `async with`"
        return await self._session.ws_connect(
            self.connection.server + path,
            params=params,
            protocols=protocols,
            headers=await self.connection.headers(),
            proxy=self.connection.proxy,
            max_msg_size=0,
        )

    async def exchange(self, request: Request) -> tuple[int, bytes]:
        """The status and the text of whatever answers. Nothing is tried again."""
        try:
            async with self._slots, await self._request(request) as answer:
                return answer.status, await answer.read()
        except NO_ANSWER as error:
            raise UnreachableError(f"{request.method} {request.path}: {_why(error)}") from error

    async def send(self, request: Request) -> Object:
        """The answer's object. Waits as the server says when it is throttled; nothing else is tried again here."""
        for attempt in range(self._tries):
            try:
                async with self._fence(), self._slots, await self._answer(request) as answer:
                    return await answers.parsed(await _body(answer))
            except ApiError as error:
                # A throttled request was refused before it did anything, so repeating it is safe.
                if not error.throttled or attempt == self._tries - 1:
                    raise
                await asyncio.sleep((error.retry_after or 1.0) * random.uniform(1.0, 1.5))  # noqa: S311 (spreads load)
            except NO_ANSWER as error:
                self.outage.suspect()
                unreachable = UnreachableError(f"{request.method} {request.path}: {_why(error)}")
                unreachable.sent = not isinstance(error, aiohttp.ClientConnectorError)
                raise unreachable from error
        raise AssertionError("the last try raises or returns")

    def _fence(self) -> asyncio.Timeout:
        """Ends a request with the time that is left for it."""
        left = self._left()
        if left <= 0:
            raise NotLeadingError
        return asyncio.timeout(None if left == math.inf else left)

    async def _answer(self, request: Request) -> aiohttp.ClientResponse:
        """The answer, if it is no refusal."""
        answer = await self._request(request)
        if answer.status >= 400:
            if answer.status >= 500:
                self.outage.suspect()
            async with answer:
                raise from_answer(answer.status, await answer.read(), answer.headers.get("retry-after"))
        return answer

    async def _request(self, request: Request) -> aiohttp.ClientResponse:
        assert self._session, "used outside `async with`"
        headers = dict(await self.connection.headers())
        if request.accept:
            headers["accept"] = request.accept
        data = None
        if request.body is not None:
            headers["content-type"] = request.form
            data = json.dumps(request.body, separators=(",", ":")).encode()
        if self._left() <= 0:  # this request waited for a slot, or the whole process was stopped meanwhile
            raise NotLeadingError
        answer = await self._session.request(
            request.method,
            self.connection.server + request.path,
            params=request.params,
            data=data,
            headers=headers,
            proxy=self.connection.proxy,
            timeout=request.timeout,
        )
        _notice_loss(answer)
        return answer


def _notice_loss(answer: aiohttp.ClientResponse) -> None:
    """Have the kernel end the answer's connection if the other side is gone without a word: a node or a router died."""
    transport = answer.connection and answer.connection.transport
    found = transport and transport.get_extra_info("socket")
    if not found:
        return  # the whole answer has come already
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, max(1, LOST_AFTER // 3))
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, max(1, LOST_AFTER // 6))
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, LOST_AFTER * 1000)


async def _body(answer: aiohttp.ClientResponse) -> bytes:
    """The whole body, up to a limit: users decide how large the objects of a page are."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in answer.content.iter_any():
        size += len(chunk)
        if size > LARGEST_ANSWER:
            raise TooLargeError(f"{answer.url.path}: the answer has more than {LARGEST_ANSWER >> 20} MiB")
        chunks.append(chunk)
    return b"".join(chunks)


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
    if rest:  # cut off, or no Kubernetes API at all
        yield rest
