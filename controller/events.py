"""Events: said once, counted when they come again, never in the way of the work."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections import OrderedDict
from typing import TYPE_CHECKING

from mpiboot.controller import kinds
from mpiboot.controller.api_error import ApiError, UnreachableError
from mpiboot.controller.clock import now
from mpiboot.controller.conditions import REASONS
from mpiboot.controller.words import truncated

if TYPE_CHECKING:
    from mpiboot.controller.api import Api, Object
    from mpiboot.controller.status import Event
    from mpiboot.controller.view import MpiJobView

log = logging.getLogger(__name__)

COMPONENT = "mpi-job-controller"  # the name that users of the peers filter by
REMEMBERED = 4096  # events that may be counted on; older ones begin anew
SAME_AGAIN_AFTER = 60.0  # seconds in which the same event is not even counted
LONGEST_WAIT = 1000  # events that wait to be sent; more are dropped, as they are only news


class Recorder:
    """Sends events in the order in which they are told."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._queue: asyncio.Queue[tuple[str, Object]] = asyncio.Queue(LONGEST_WAIT)
        self._known: OrderedDict[tuple[str, Event], tuple[str, int, float]] = OrderedDict()

    def tell(self, view: MpiJobView, event: Event) -> None:
        """Have an event sent. The same trouble is not told twice within a minute."""
        meta = view.meta
        key = (meta.uid, event)
        moment, time_now = time.monotonic(), now()
        name, count, at = self._known.get(key, ("", 0, 0.0))
        if count and moment - at < SAME_AGAIN_AFTER and event.reason not in REASONS.values():
            return  # a trouble that lasts; a step of the job's life is told each time
        log.info("%s: %s", event.reason, event.message)
        if not name:
            name = f"{meta.name[:200]}.{uuid.uuid4().hex[:16]}"
        self._known[key] = (name, count + 1, moment)
        self._known.move_to_end(key)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        reference = {
            "apiVersion": kinds.MPI_JOB.api_version,
            "kind": kinds.MPI_JOB.name,
            "namespace": meta.namespace,
            "name": meta.name,
            "uid": meta.uid,
            "resourceVersion": str(meta.version),
        }
        said = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": meta.namespace},
            "involvedObject": reference,
            "type": event.type,
            "reason": event.reason[:128],
            "message": truncated(event.message),
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "firstTimestamp": time_now,
            "lastTimestamp": time_now,
            "count": count + 1,
        }
        try:
            self._queue.put_nowait((meta.namespace, said))
        except asyncio.QueueFull:
            log.warning("event dropped, too many are waiting")

    async def run(self) -> None:
        while True:
            namespace, said = await self._queue.get()
            try:
                await self._send(namespace, said)
            except (ApiError, UnreachableError) as error:
                # A namespace on its way out takes no events.
                log.info("%s: event %s not sent: %s", namespace, said["reason"], error)

    async def _send(self, namespace: str, said: Object) -> None:
        if said["count"] > 1:
            patch = {"count": said["count"], "lastTimestamp": said["lastTimestamp"]}
            try:
                await self._api.patch(kinds.EVENT, namespace, said["metadata"]["name"], patch)
            except ApiError as error:
                if not error.not_found:
                    raise
            else:
                return
        await self._api.create(kinds.EVENT, namespace, said)
