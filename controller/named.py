"""Which workers can be found by their names: a worker is Ready a moment before the cluster's DNS has heard of it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from mpiboot.controller.api_error import ApiError
from mpiboot.controller.kinds import ENDPOINT_SLICE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mpiboot.controller.api import Api
    from mpiboot.controller.view_pod import PodView

log = logging.getLogger(__name__)

LOOK_AGAIN = 0.2  # seconds
# A cluster may have names by other means. Then this is how much later a launcher hears of a worker.
PATIENCE = 5.0


class Named:
    """Remembers who was found once, so that the cluster is asked only about new workers."""

    def __init__(self) -> None:
        self._found: set[str] = set()
        self._since: dict[str, float] = {}

    async def lacking(
        self, api: Api, namespace: str, service: str, workers: Iterable[PodView], now: float
    ) -> frozenset[str]:
        """The names of those that cannot be found yet."""
        new = [pod for pod in workers if pod.meta.uid not in self._found]
        known = await _hostnames(api, namespace, service) if new else None
        for pod in new:
            waited = now - self._since.setdefault(pod.meta.uid, now)
            if known is None or pod.name in known or waited >= PATIENCE:
                self._found.add(pod.meta.uid)
        return frozenset(pod.name for pod in new if pod.meta.uid not in self._found)


async def _hostnames(api: Api, namespace: str, service: str) -> set[str] | None:
    """What DNS makes names of; None if that cannot be read."""
    found: set[str] = set()
    try:
        async for slices, _ in api.pages(
            ENDPOINT_SLICE, namespace, labelSelector=f"kubernetes.io/service-name={service}"
        ):
            found.update(each.get("hostname", "") for one in slices for each in one.get("endpoints") or ())
    except ApiError as error:
        log.warning("names of workers are taken for known: %s", error)
        return None
    return found
