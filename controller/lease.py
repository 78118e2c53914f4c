"""The leader's Lease, timed by this machine's monotonic clock. The clocks of other machines are not used."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpiboot.kube import kinds
from mpiboot.kube.api_error import ApiError, UnreachableError
from mpiboot.kube.clock import micro_now

if TYPE_CHECKING:
    from mpiboot.kube.api import Api, Object

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Seen:
    """The Lease as it was after its last change, and when this process saw that change."""

    holder: str
    renewed: str
    seconds: float
    at: float

    def is_held(self, now: float) -> bool:
        """Whether its holder may still lead."""
        return bool(self.holder) and now - self.at < self.seconds


class Watcher:
    """Watches a Lease. It counts as held until it has not changed for the time that it names itself."""

    def __init__(self, api: Api, namespace: str, name: str) -> None:
        self.namespace, self.name = namespace, name
        self._api = api
        self.seen: Seen | None = None

    async def look(self) -> Object | None:
        """The Lease, or None if there is none."""
        try:
            found = await self._api.get(kinds.LEASE, self.namespace, self.name)
        except ApiError as error:
            if not error.not_found:
                raise
            self.seen = None
            return None
        spec = found.get("spec") or {}
        holder, renewed = spec.get("holderIdentity") or "", spec.get("renewTime") or ""
        if self.seen is None or (self.seen.holder, self.seen.renewed) != (holder, renewed):
            self.seen = Seen(holder, renewed, float(spec.get("leaseDurationSeconds") or 15), time.monotonic())
        return found

    @property
    def held(self) -> bool:
        return self.seen is not None and self.seen.is_held(time.monotonic())


class Lease:
    """Our own. `acquire` returns when this replica leads, `keep` when it no longer does: then the process must end."""

    def __init__(self, api: Api, namespace: str, name: str, identity: str, seconds: float) -> None:
        self._api = api
        self._watcher = Watcher(api, namespace, name)
        self._identity = identity
        self._seconds = seconds
        self._transitions = 0

    async def acquire(self) -> None:
        said = ""
        while True:
            try:
                if await self._take():
                    return
            except (ApiError, UnreachableError) as error:
                log.warning("lease %s/%s: %s", self._watcher.namespace, self._watcher.name, error)
            if self._watcher.seen and self._watcher.held and said != self._watcher.seen.holder:
                said = self._watcher.seen.holder
                log.info("not leading: %s leads", said)
            await asyncio.sleep(self._seconds / 8)

    async def keep(self) -> None:
        """Renew until that fails for so long that another replica may take over."""
        renewed = time.monotonic()
        # The others wait for the full time since they saw our last renewal, so this leaves a margin.
        limit = self._seconds * 2 / 3
        while True:
            await asyncio.sleep(self._seconds / 6)
            begun = time.monotonic()
            try:
                async with asyncio.timeout(max(0.1, renewed + limit - begun)):
                    if await self._take():
                        renewed = begun
                        continue
                    log.error("lease lost: %s leads", self._watcher.seen and self._watcher.seen.holder)
                    return
            except (ApiError, UnreachableError, TimeoutError) as error:
                if time.monotonic() - renewed >= limit:
                    log.error("lease lost: not renewed for %.1f s: %s", limit, str(error) or "no answer")
                    return

    async def release(self) -> None:
        """Let another replica lead at once, rather than after the Lease's time."""
        found = await self._watcher.look()
        if found and self._watcher.seen and self._watcher.seen.holder == self._identity:
            await self._write(found, holder="", seconds=1)

    async def _take(self) -> bool:
        """Take or renew the Lease. Whether this replica holds it now."""
        found = await self._watcher.look()
        seen = self._watcher.seen
        if found is None or seen is None:
            spec = self._spec(self._identity, self._seconds)
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec}
            body["metadata"] = {"name": self._watcher.name, "namespace": self._watcher.namespace}
            try:
                await self._api.create(kinds.LEASE, self._watcher.namespace, body)
            except ApiError as error:
                if error.already_exists:
                    return False
                raise
            return True
        if seen.holder != self._identity and seen.is_held(time.monotonic()):
            return False
        if seen.holder != self._identity:
            self._transitions = int((found.get("spec") or {}).get("leaseTransitions") or 0) + 1
        try:
            await self._write(found, holder=self._identity, seconds=self._seconds)
        except ApiError as error:
            if error.conflict:
                return False
            raise
        return True

    async def _write(self, found: Object, *, holder: str, seconds: float) -> None:
        found["spec"] = {**(found.get("spec") or {}), **self._spec(holder, seconds)}
        await self._api.replace(kinds.LEASE, self._watcher.namespace, self._watcher.name, found)

    def _spec(self, holder: str, seconds: float) -> Object:
        now = micro_now()
        spec: Object = {"holderIdentity": holder, "leaseDurationSeconds": int(seconds), "renewTime": now}
        if self._watcher.seen is None or self._watcher.seen.holder != self._identity:
            spec |= {"acquireTime": now, "leaseTransitions": self._transitions}
        return spec
