"""The client for code that is not asynchronous: engines, commands, tools and tests. Any thread may call it."""

from __future__ import annotations

import asyncio
import atexit
import json
import queue
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

import aiohttp

from mpiboot.kube.api import Api, Object, Request
from mpiboot.kube.api_error import ApiError, UnreachableError
from mpiboot.kube.connection import connect, from_kubeconfig
from mpiboot.kube.kinds import MERGE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator
    from concurrent.futures import Future
    from pathlib import Path

    from mpiboot.kube.connection import Connection

T = TypeVar("T")
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
SLOWEST = aiohttp.ClientTimeout(total=60)  # a busy machine takes long


@dataclass(frozen=True)
class Answer:
    """What an API server answered; `status` 0 means that there was no answer."""

    status: int
    text: str

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def object(self) -> Object:
        """The answer's object; empty if there is none."""
        try:
            found = json.loads(self.text)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


class Client:
    """An Api whose event loop runs in a thread of its own, until `close` or the end of the process.

    `get` and its like are for tools and tests: they take any path, and give refusals as answers.
    """

    def __init__(self, connecting: Callable[[], Awaitable[Connection]] = connect) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kubernetes", daemon=True)
        self._thread.start()
        try:
            self.api = self.call(self._open(connecting))
        except BaseException:
            self._stop()
            raise
        atexit.register(self.close)

    @classmethod
    def of(cls, kubeconfig: Path) -> Self:
        """The client of a cluster on this machine: a proxy that the environment names is not for it."""

        async def connecting() -> Connection:
            return replace(await from_kubeconfig(str(kubeconfig)), proxy=None)

        return cls(connecting)

    @property
    def server(self) -> str:
        """The address of the API server."""
        return self.api.connection.server

    def get(self, path: str) -> Answer:
        return self.ask("GET", path)

    def post(self, path: str, content: object) -> Answer:
        return self.ask("POST", path, content)

    def patch(self, path: str, content: object) -> Answer:
        """The answer to a merge of an object with what is there."""
        return self.ask("PATCH", path, content, MERGE)

    def delete(self, path: str) -> Answer:
        """The answer to DELETE; what the object owns is deleted after it."""
        return self.ask("DELETE", path, {"propagationPolicy": "Background"})

    def ask(self, method: str, path: str, body: object = None, form: str = "application/json") -> Answer:
        try:
            status, text = self.call(self.api.exchange(Request(method, path, body=body, form=form, timeout=SLOWEST)))
        except UnreachableError as error:
            return Answer(0, str(error))
        return Answer(status, text.decode(errors="replace"))

    def version(self, path: str) -> str:
        """The version of a collection at this moment."""
        return str(self.get(f"{path}?limit=1").object["metadata"]["resourceVersion"])

    def watch(self, path: str, since: str, limit: float) -> Iterator[tuple[str, Object]]:
        """The changes of a collection after a version, as (type, metadata), each when it comes, for `limit` seconds."""
        params = {"watch": "1", "resourceVersion": since, "timeoutSeconds": f"{limit:.0f}"}
        timeout = aiohttp.ClientTimeout(total=limit + 60)
        came: queue.SimpleQueue[tuple[str, Object] | None] = queue.SimpleQueue()

        async def pass_on() -> None:
            try:
                async for change in self.api.changes(Request("GET", path, params, timeout=timeout, accept=METADATA)):
                    came.put(change)
            except (ApiError, UnreachableError):
                pass  # as the end of the watch: the caller begins another
            finally:
                came.put(None)

        watching = self.start(pass_on())
        try:
            while change := came.get():
                yield change[0], change[1]["metadata"]
        finally:
            watching.cancel()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin some work. Cancelling its future cancels the work."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of some work, once it is done."""
        return self.start(work).result()

    def close(self) -> None:
        """Cancel what is under way, and close all connections. Once is enough; more does nothing."""
        atexit.unregister(self.close)
        if self._thread.is_alive():
            self.call(self._close())
            self._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _open(self, connecting: Callable[[], Awaitable[Connection]]) -> Api:
        return await Api(await connecting()).__aenter__()

    async def _close(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self.api.__aexit__()
