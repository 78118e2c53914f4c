"""The objects of one kind: listed, then watched, and kept as small projections."""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from mpiboot.kube.api_error import ApiError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mpiboot.kube.api import Api, Object
    from mpiboot.kube.kinds import Kind

log = logging.getLogger(__name__)

FIRST_PAUSE = 0.2  # seconds before the next list or watch; doubles up to LONGEST_PAUSE
LONGEST_PAUSE = 15.0
LEAST_CYCLE = 0.5  # seconds from one list or watch to the next: with a list before each watch that is 4 requests/s
SHORT_WATCH = 1.0  # seconds; a watch that ends sooner and brought nothing counts as a failure
REMEMBERED = 10_000  # deleted objects; an answer to a write of ours is late by seconds, not by thousands of deletions
REMEMBERED_GONE = 10  # kept pods of a job that are gone: only the last one explains a failure
REMEMBERED_UNREADABLE = 1000
BUSY = frozenset({429, 502, 503, 504})  # the server, or a proxy, had no time: the version is still good


class View(Protocol):
    """What every projection has. `key` is the job that the object belongs to, NAMESPACE/NAME."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def key(self) -> str: ...


V = TypeVar("V", bound=View)
Name = tuple[str, str]  # namespace and name


class Cache(Generic[V]):
    """The objects of one kind. After each change the cache calls `changed` with the job's key.

    `project` returns None for an object that belongs to no job. If it raises, the cache skips the object and passes it
    to `unreadable`: users may have written anything into it. If `keep` is true of a deleted object, its last projection
    stays until `forget`. `keep` also learns whether a watch brought the object's last state; else a list lacked it.
    Answers to the operator's own writes go in by `put`: the next look does not wait for a watch.
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
        keep: Callable[[V, bool], bool] = lambda *_: False,
        unreadable: Callable[[Kind, Object, Exception], None] = lambda *_: None,
    ) -> None:
        self.kind = kind
        self.synced = asyncio.Event()
        self._api = api
        self._project = project
        self._changed = changed
        self._namespace = namespace
        self._params = {"labelSelector": selector} if selector else {}
        self._keep = keep
        self._unreadable = unreadable
        self._by_key: dict[str, dict[str, V]] = {}
        self._keys: dict[Name, str] = {}  # of every object in _by_key
        self._gone: dict[str, dict[str, V]] = {}
        self._deleted: dict[Name, int] = {}  # versions at which the latest objects went
        self._skipped: dict[Name, tuple[Object, Exception]] = {}

    def of(self, key: str) -> Mapping[str, V]:
        """A job's objects by name."""
        return self._by_key.get(key, {})

    def gone(self, key: str) -> Mapping[str, V]:
        """A job's deleted objects for which `keep` was true."""
        return self._gone.get(key, {})

    def forget(self, key: str) -> None:
        """Drop the deleted objects of a job."""
        self._gone.pop(key, None)

    def keys(self) -> Iterable[str]:
        """The keys of all jobs that have an object here."""
        return self._by_key.keys()

    def skipped(self) -> Iterable[tuple[Object, Exception]]:
        """The objects that cannot be read, and why. Not more than the latest thousand."""
        return tuple(self._skipped.values())

    def put(self, found: Object) -> None:
        """Store an object from the API server, unless a newer version is known."""
        name = name_of(found)
        view = self._read(name, found)
        if view is None:
            if name not in self._skipped:
                self._drop(name)  # its label is gone
            return
        key = self._keys.get(name, view.key)
        known = self.of(key).get(view.name)
        newest = max(known.version if known else 0, self._deleted.get(name, 0))
        if view.version > newest:
            if key != view.key:
                self._drop(name)  # its label names another job now
            self._by_key.setdefault(view.key, {})[view.name] = view
            self._keys[name] = view.key
            self._changed(view.key)

    def _read(self, name: Name, found: Object) -> V | None:
        """The projection of an object, or None if it belongs to no job or cannot be read."""
        try:
            view = self._project(found)
        except Exception as error:  # noqa: BLE001 (`unreadable` logs and counts it)
            self._skipped[name] = (found, error)
            if len(self._skipped) > REMEMBERED_UNREADABLE:
                del self._skipped[next(iter(self._skipped))]
            self._unreadable(self.kind, found, error)
            return None
        self._skipped.pop(name, None)
        return view

    async def run(self) -> None:
        """List and watch until cancelled. After every failure of the network or of the server, try again."""
        pause = FIRST_PAUSE
        version = ""
        cycle = -math.inf
        while True:
            await asyncio.sleep(cycle + LEAST_CYCLE - time.monotonic())
            cycle = time.monotonic()
            why, wanted = "", 0.0  # seconds that the server asks us to wait
            news, began = 0, math.inf
            try:
                version = version or await self._list()
                began = time.monotonic()
                async for change, found in self._api.watch(self.kind, self._namespace, version, **self._params):
                    version = str(found["metadata"]["resourceVersion"])
                    news += change != "BOOKMARK"
                    self._take(change, found)
            except UnreachableError as error:
                why = str(error)
            except ApiError as error:
                wanted, why = error.retry_after or 0.0, str(error)
                if error.status not in BUSY:
                    version = ""  # the version is too old (410), or access is refused: list again
            except Exception:
                # Whatever the server sent, the operator still needs all other objects.
                log.exception("%s: what came cannot be used", self.kind.plural)
                version, why = "", "what came cannot be used"
            if news or time.monotonic() - began >= SHORT_WATCH:
                pause = FIRST_PAUSE
                if not why:
                    continue
            # One pause for every way in which a list or a watch ends: requests in a loop would harm a slow server.
            spread = random.uniform(0.75, 1.25)  # noqa: S311 (spreads load)
            delay = max(pause * spread, wanted * max(spread, 1.0))
            log.warning("%s: %s; next try in %.1f s", self.kind.plural, why or "the watch ended at once", delay)
            woken = await self._api.outage.sleep(delay, least=wanted)
            pause = FIRST_PAUSE if woken else min(pause * 2, LONGEST_PAUSE)

    def _take(self, change: str, found: Object) -> None:
        if change == "BOOKMARK":
            return
        if change != "DELETED":
            self.put(found)
            return
        name = name_of(found)
        view = self._read(name, found)
        self._skipped.pop(name, None)
        if view:
            # A late answer to a write of ours must not bring the object back.
            self._deleted[name] = view.version
            if len(self._deleted) > REMEMBERED:
                del self._deleted[next(iter(self._deleted))]
        self._drop(name, view)

    async def _list(self) -> str:
        version = "0"
        seen: set[Name] = set()
        async for found, at in self._api.pages(self.kind, self._namespace, **self._params):
            version = at
            for each in found:
                # Objects in a list do not name their kind.
                each.setdefault("kind", self.kind.name)
                each.setdefault("apiVersion", self.kind.api_version)
                seen.add(name_of(each))
                self.put(each)
        listed = int(version)
        gone = [
            name
            for name, key in self._keys.items()
            # An object that is newer than the list was written by us while we read the list.
            if name not in seen and self._by_key[key][name[1]].version <= listed
        ]
        for name in gone:
            self._drop(name)
        for name in self._skipped.keys() - seen:
            del self._skipped[name]
        self._deleted.clear()
        self.synced.set()
        return version

    def _drop(self, name: Name, last: V | None = None) -> None:
        key = self._keys.pop(name, None)
        if key is None:
            return
        views = self._by_key[key]
        known = views.pop(name[1])
        if self._keep(last or known, last is not None):
            gone = self._gone.setdefault(key, {})
            gone[name[1]] = last or known
            if len(gone) > REMEMBERED_GONE:
                del gone[next(iter(gone))]
        if not views:
            del self._by_key[key]
        self._changed(key)


def name_of(found: Object) -> Name:
    """Namespace and name of an object, whatever else is in it."""
    metadata = found.get("metadata")
    if not isinstance(metadata, dict):
        return "", ""
    return str(metadata.get("namespace", "")), str(metadata.get("name", ""))
