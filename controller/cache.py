"""What the operator sees of the cluster: one kind's objects, listed, then watched, kept as small projections."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from mpiboot.controller.api_error import ApiError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mpiboot.controller.api import Api, Object
    from mpiboot.controller.kinds import Kind

log = logging.getLogger(__name__)

FIRST_PAUSE = 0.2  # seconds before a list is tried again; doubles up to LONGEST_PAUSE
LONGEST_PAUSE = 15.0
REMEMBERED = 10_000  # deleted objects; answers to our own writes are late by seconds, not by thousands of deletions


class View(Protocol):
    """What a projection must tell. `key` is the job it belongs to, NAMESPACE/NAME."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def key(self) -> str: ...


V = TypeVar("V", bound=View)


class Cache(Generic[V]):
    """The objects of one kind. `changed` is called with the job's key after each change, and `project` may say None.

    Of a deleted object for which `keep` is true the last that was seen of it stays, until its job is forgotten.
    Answers to our own writes go in by `put`, so that the next look at a job sees them without waiting for the watch.
    """

    def __init__(
        self,
        api: Api,
        kind: Kind,
        project: Callable[[Object], V | None],
        changed: Callable[[str], None],
        *,
        namespace: str = "",
        selector: str = "",
        keep: Callable[[V], bool] = lambda _: False,
    ) -> None:
        self.kind = kind
        self.synced = asyncio.Event()
        self._api = api
        self._project = project
        self._changed = changed
        self._namespace = namespace
        self._params = {"labelSelector": selector} if selector else {}
        self._keep = keep
        self._by_key: dict[str, dict[str, V]] = {}
        self._gone: dict[str, dict[str, V]] = {}
        self._deleted: dict[tuple[str, str], int] = {}  # versions at which the latest objects went

    def of(self, key: str) -> Mapping[str, V]:
        """A job's objects by name."""
        return self._by_key.get(key, {})

    def gone(self, key: str) -> Mapping[str, V]:
        """Those of a job's objects that are no more and were kept in mind."""
        return self._gone.get(key, {})

    def forget(self, key: str) -> None:
        """The job is no more: what is gone of it explains nothing any longer."""
        self._gone.pop(key, None)

    def keys(self) -> Iterable[str]:
        """The keys of all jobs that have an object here."""
        return self._by_key.keys()

    def put(self, found: Object) -> None:
        """Take in an object as an API server showed it, unless something newer is known."""
        view = self._project(found)
        if view is None:
            return
        known = self.of(view.key).get(view.name)
        newest = max(known.version if known else 0, self._deleted.get((view.namespace, view.name), 0))
        if view.version > newest:
            self._by_key.setdefault(view.key, {})[view.name] = view
            self._changed(view.key)

    async def run(self) -> None:
        """List and watch until cancelled, through every failure of the way or of the server."""
        pause = FIRST_PAUSE
        version = ""
        while True:
            try:
                version = version or await self._list()
                async for kind, found in self._api.watch(self.kind, self._namespace, version, **self._params):
                    version = found["metadata"]["resourceVersion"]
                    pause = FIRST_PAUSE
                    self._take(kind, found)
            except (ApiError, UnreachableError) as error:
                if isinstance(error, ApiError):
                    version = ""  # too old (410), or not allowed to see it: begin anew
                    if error.expired:
                        log.info("%s: listing again, the watch's version has expired", self.kind.plural)
                        continue
                log.warning("%s: %s; again in %.1f s", self.kind.plural, error, pause)
                await asyncio.sleep(pause * random.uniform(0.75, 1.25))  # noqa: S311 (spreads load)
                pause = min(pause * 2, LONGEST_PAUSE)

    def _take(self, kind: str, found: Object) -> None:
        if kind == "BOOKMARK":
            return
        if kind != "DELETED":
            self.put(found)
            return
        view = self._project(found)
        if view:
            # A late answer to one of our own writes must not bring the object back.
            self._deleted[view.namespace, view.name] = view.version
            if len(self._deleted) > REMEMBERED:
                del self._deleted[next(iter(self._deleted))]
            self._drop(view.key, view.name, view)

    async def _list(self) -> str:
        version = "0"
        seen: set[tuple[str, str]] = set()
        async for found, at in self._api.pages(self.kind, self._namespace, **self._params):
            version = at
            for each in found:
                # Objects in a list do not name their kind.
                each.setdefault("kind", self.kind.name)
                each.setdefault("apiVersion", self.kind.api_version)
                meta = each["metadata"]
                seen.add((meta.get("namespace", ""), meta["name"]))
                self.put(each)
        listed = int(version)
        gone = [
            (key, view.name)
            for key, views in self._by_key.items()
            for view in views.values()
            # What is newer than the list came from a write of ours while it was read.
            if (view.namespace, view.name) not in seen and view.version <= listed
        ]
        for key, name in gone:
            self._drop(key, name)
        self._deleted.clear()
        self.synced.set()
        return version

    def _drop(self, key: str, name: str, last: V | None = None) -> None:
        views = self._by_key.get(key, {})
        known = views.pop(name, None)
        if known is not None:
            if self._keep(last or known):
                self._gone.setdefault(key, {})[name] = last or known
            if not views:
                del self._by_key[key]
            self._changed(key)
