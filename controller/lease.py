"""The leader's Lease, timed by this machine's own clocks. The clocks of other machines are not used."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mpiboot.kube import kinds
from mpiboot.kube.api_error import ApiError, UnreachableError
from mpiboot.kube.clock import micro_now

if TYPE_CHECKING:
    from mpiboot.kube.api import Api, Object

log = logging.getLogger(__name__)

RELEASE_WITHIN = 3.0  # seconds


def clocks() -> tuple[float, float]:
    """Two clocks. The first also counts while the machine sleeps. In a virtual machine that was suspended both may
    stand still, and the host may then set either of them right: so the one that ran further counts.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME), time.time()


def elapsed(since: tuple[float, float]) -> float:
    """Seconds since `since`, rather too many than too few."""
    return max(now - then for now, then in zip(clocks(), since, strict=True))


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

    def unread(self) -> None:
        """It could not be read: its holder may be alive all the same."""
        if self.held and self.seen:
            self.seen = replace(self.seen, at=time.monotonic())

    @property
    def held(self) -> bool:
        return self.seen is not None and self.seen.is_held(time.monotonic())


class Lease:
    """Our own. `acquire` returns when this replica leads, `keep` when it no longer does. It may acquire again."""

    def __init__(self, api: Api, namespace: str, name: str, identity: str, seconds: float) -> None:
        self._api = api
        self._watcher = Watcher(api, namespace, name)
        self._identity = identity
        self._seconds = seconds
        # The others wait for the full time since they saw our last renewal, so this leaves a margin.
        self._limit = seconds * 2 / 3
        self._transitions = 0
        self._renewed: tuple[float, float] | None = None  # before the request that renewed it

    def left(self) -> float:
        """Seconds for which surely no other replica leads; 0: another one may."""
        return 0.0 if self._renewed is None else max(0.0, self._limit - elapsed(self._renewed))

    async def acquire(self) -> None:
        said = ""
        while True:
            why, wanted = "", 0.0
            try:
                if await self._take():
                    return
                if self._watcher.seen:
                    why = f"not leading: {self._watcher.seen.holder} leads"
            except (ApiError, UnreachableError) as error:
                wanted = error.retry_after or 0.0 if isinstance(error, ApiError) else 0.0
                why = f"lease {self._watcher.namespace}/{self._watcher.name}: {error}"
            if why != said:
                said = why
                log.info("%s", why)
            await self._api.outage.sleep(max(self._seconds / 8, wanted), least=wanted)

    async def keep(self) -> None:
        """Renew until that fails for so long that another replica may take over."""
        try:
            while True:
                await asyncio.sleep(self._seconds / 6)
                try:
                    async with asyncio.timeout(max(0.1, self.left())):
                        if not await self._take():
                            log.warning("lease lost: %s leads", self._watcher.seen and self._watcher.seen.holder)
                            return
                except (ApiError, UnreachableError, TimeoutError) as error:
                    if not self.left():
                        log.warning("lease lost: not renewed for %.1f s: %s", self._limit, str(error) or "no answer")
                        return
        finally:
            self._renewed = None

    async def release(self) -> None:
        """Let another replica lead at once, rather than after the Lease's time. Not needed if the server is away."""
        self._renewed = None
        try:
            async with asyncio.timeout(RELEASE_WITHIN):
                found = await self._watcher.look()
                if found and self._watcher.seen and self._watcher.seen.holder == self._identity:
                    await self._write(found, holder="", seconds=1)
        except (ApiError, UnreachableError, TimeoutError) as error:
            log.warning("lease not released: %s", str(error) or "no answer")

    async def _take(self) -> bool:
        """Take or renew the Lease. Whether this replica holds it now."""
        begun = clocks()
        held = await self._try()
        self._renewed = begun if held else None
        return held

    async def _try(self) -> bool:
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
