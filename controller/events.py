"""Kubernetes events: sent once, counted when they come again, and never waited for."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
import uuid
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpiboot.controller.state_word import truncated
from mpiboot.controller.status import Event
from mpiboot.kube import kinds
from mpiboot.kube.api_error import ApiError, UnreachableError
from mpiboot.kube.clock import now
from mpiboot.kube.conditions import REASONS
from mpiboot.kube.projections import digest

if TYPE_CHECKING:
    from mpiboot.kube.api import Api, Object
    from mpiboot.kube.kinds import Kind
    from mpiboot.kube.projections import MpiJobView

log = logging.getLogger(__name__)

COMPONENT = "mpi-job-controller"  # the name that users of mpi-operator filter by
REMEMBERED = 4096  # events whose count may still grow; an older one that comes again is a new event
SAME_AGAIN_AFTER = 60.0  # seconds in which the same event is not even counted
LONGEST_WAIT = 1000  # events that wait to be sent; the operator drops more
TRIES = 3
PAUSE = 2.0  # seconds; by then the probe knows of an outage
SHARE = 200  # of these for one namespace: it must not crowd out the events of others


@dataclass(frozen=True)
class Subject:
    """The object that an event is about."""

    kind: Kind
    namespace: str
    name: str
    uid: str
    version: str


def subject(kind: Kind, found: Object) -> Subject:
    """The reference to an object whose fields may be anything."""
    metadata = found.get("metadata")
    fields = metadata if isinstance(metadata, dict) else {}
    return Subject(kind, *(str(fields.get(name, "")) for name in ("namespace", "name", "uid", "resourceVersion")))


class Recorder:
    """Sends events in order, in a task of its own."""

    def __init__(self, api: Api) -> None:
        self._api = api
        # News before what an earlier process may have sent, each in order.
        self._queue: asyncio.PriorityQueue[tuple[bool, int, str, Object]] = asyncio.PriorityQueue()
        self._number = itertools.count()
        self._known: OrderedDict[tuple[str, Event], tuple[str, int, float]] = OrderedDict()
        self._waiting: Counter[str] = Counter()  # by namespace

    def send(self, view: MpiJobView, event: Event, *, again: bool = False) -> None:
        """Send an event about a job. The same warning is not sent twice within a minute.

        `again`: an earlier process may have sent it. The API server then refuses it by its name.
        """
        meta = view.meta
        about = Subject(kinds.MPI_JOB, meta.namespace, meta.name, meta.uid, str(meta.version))
        self.send_about(about, event, again=again)

    def send_about(self, about: Subject, event: Event, *, again: bool = False) -> None:
        """Send an event about any object."""
        changed, event = event.at, Event(event.type, event.reason[:128], truncated(event.message))
        key = (about.uid, event)
        moment, time_now = time.monotonic(), now()
        name, count, at = self._known.get(key, ("", 0, 0.0))
        if count and moment - at < SAME_AGAIN_AFTER and event.reason not in REASONS.values():
            return  # a problem that lasts; a step of the job's life is sent each time
        if not again:
            log.info("%s: %s", event.reason, event.message)
        if not name:
            mark = digest([about.uid, event.reason, changed])[:16] if changed else uuid.uuid4().hex[:16]
            name = f"{about.name[:200]}.{mark}"
        self._known[key] = (name, count + 1, moment)
        self._known.move_to_end(key)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        reference = {
            "apiVersion": about.kind.api_version,
            "kind": about.kind.name,
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
            "resourceVersion": about.version,
        }
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": about.namespace},
            "involvedObject": reference,
            "type": event.type,
            "reason": event.reason,
            "message": event.message,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "firstTimestamp": time_now,
            "lastTimestamp": time_now,
            "count": count + 1,
        }
        if not again:
            if self._waiting[about.namespace] >= SHARE or self._waiting.total() >= LONGEST_WAIT:
                log.warning("event dropped: too many events wait")
                return
            self._waiting[about.namespace] += 1
        self._queue.put_nowait((again, next(self._number), about.namespace, body))

    async def run(self) -> None:
        while True:
            again, _, namespace, body = await self._queue.get()
            if not again:
                self._waiting[namespace] -= 1
                if not self._waiting[namespace]:
                    del self._waiting[namespace]
            await self._deliver(namespace, body)

    async def _deliver(self, namespace: str, body: Object) -> None:
        """Send one event. An outage of the API server delays it; any other failure may cost it after some tries."""
        for left in reversed(range(TRIES)):
            try:
                return await self._send(namespace, body)
            except (ApiError, UnreachableError) as error:
                if isinstance(error, ApiError) and error.already_exists:
                    return None  # sent before, by this process or by an earlier one
                # A namespace that is being deleted takes no events.
                if not left or (isinstance(error, ApiError) and not error.passing):
                    log.info("%s: event %s not sent: %s", namespace, body["reason"], error)
                    return None
                await self._api.outage.sleep(PAUSE)
                await self._api.outage.over()
        return None

    async def _send(self, namespace: str, body: Object) -> None:
        if body["count"] > 1:
            patch = {"count": body["count"], "lastTimestamp": body["lastTimestamp"]}
            try:
                await self._api.patch(kinds.EVENT, namespace, body["metadata"]["name"], patch)
            except ApiError as error:
                if not error.not_found:
                    raise
            else:
                return
        await self._api.create(kinds.EVENT, namespace, body)
