"""Which workers have names in DNS: a worker is Ready a moment before the cluster's DNS knows it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from mpiboot.kube.api_error import ApiError
from mpiboot.kube.kinds import ENDPOINT_SLICE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mpiboot.kube.api import Api
    from mpiboot.kube.pod_projection import PodView

log = logging.getLogger(__name__)

LOOK_AGAIN = 0.2  # seconds
A_WORKER = 0.005  # seconds between two looks for each worker that is there: a small job's launcher waits for no pause
# A cluster may make names without EndpointSlices. There each worker counts as known after this time.
PATIENCE = 5.0


class DnsNames:
    """Remembers the workers that DNS knows, so that each look asks only about new ones."""

    def __init__(self) -> None:
        self._found: set[str] = set()
        self._since: dict[str, float] = {}
        self._next = float("-inf")

    def keep(self, uids: Iterable[str]) -> None:
        """Forget all pods but these: a job may replace its workers for months."""
        there = frozenset(uids)
        self._found &= there
        for uid in self._since.keys() - there:
            del self._since[uid]

    def not_found(self, workers: Iterable[PodView]) -> frozenset[str]:
        """The names of the workers that DNS did not know when `unknown` looked last."""
        return frozenset(pod.name for pod in workers if pod.meta.uid not in self._found)

    async def unknown(
        self, api: Api, namespace: str, service: str, workers: Sequence[PodView], now: float
    ) -> frozenset[str]:
        """The names of the workers that DNS does not know yet. Workers come one by one, and are looked up together."""
        if now < self._next:
            return self.not_found(workers)
        new = [pod for pod in workers if pod.meta.uid not in self._found]
        if new:
            self._next = now + min(LOOK_AGAIN, len(workers) * A_WORKER)
        known = await _hostnames(api, namespace, service) if new else None
        for pod in new:
            waited = now - self._since.setdefault(pod.meta.uid, now)
            if known is None or pod.name in known or waited >= PATIENCE:
                self._found.add(pod.meta.uid)
        return self.not_found(new)


async def _hostnames(api: Api, namespace: str, service: str) -> set[str] | None:
    """The host names in the Service's EndpointSlices; None if they cannot be read."""
    found: set[str] = set()
    try:
        async for slices, _ in api.pages(
            ENDPOINT_SLICE, namespace, labelSelector=f"kubernetes.io/service-name={service}"
        ):
            found.update(each.get("hostname", "") for one in slices for each in one.get("endpoints") or ())
    except ApiError as error:
        log.warning("EndpointSlices cannot be read, so all names of workers count as known: %s", error)
        return None
    return found
