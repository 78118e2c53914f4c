"""What must hold before the operator works: a cluster new enough, the CRD, and no other operator on the same jobs."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from mpiboot.controller import kinds
from mpiboot.controller.api import Request
from mpiboot.controller.api_error import ApiError, UnreachableError
from mpiboot.controller.lease import Watcher
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpiboot.controller.api import Api

log = logging.getLogger(__name__)

OLDEST = (1, 29)  # the first with the CRD's validation rules and the Jobs' podReplacementPolicy on by default
LOOK_EVERY = 5.0  # seconds between looks at the peers' leases
SAY_EVERY = 12  # looks


class ClusterError(UserError):
    """The cluster cannot be worked with as it is."""

    exit_code = 1


async def check(api: Api) -> None:
    """Raises ClusterError with what to do."""
    try:
        version = await api.send(Request("GET", "/version"))
        found = await api.send(Request("GET", f"/apis/{kinds.MPI_JOB.api_version}"))
    except UnreachableError as error:
        raise ClusterError(f"the API server at {api.connection.server} does not answer: {error}") from None
    except ApiError as error:
        if error.not_found:
            raise ClusterError(no_crd()) from None
        raise ClusterError(f"the API server at {api.connection.server} refuses us: {error}") from None
    if (fault := version_fault(version)) is not None:
        raise ClusterError(fault)
    if not any(resource["name"] == kinds.MPI_JOB.plural for resource in found["resources"]):
        raise ClusterError(no_crd())


def version_fault(version: dict[str, str]) -> str | None:
    """Why a cluster of this version cannot be used, or None."""
    major, minor = (int("".join(filter(str.isdigit, version[part])) or 0) for part in ("major", "minor"))
    if (major, minor) >= OLDEST:
        return None
    return f"the cluster is Kubernetes {version['gitVersion']}; needed is {OLDEST[0]}.{OLDEST[1]} or newer"


def no_crd() -> str:
    return (
        f"the cluster does not know {kinds.MPI_JOB.name} of {kinds.MPI_JOB.api_version}; "
        "install it with: kubectl apply --server-side -f deploy/crd.yaml"
    )


class Peers:
    """Other MPI operators of the cluster. Two on one job would undo each other's work, so ours keeps still."""

    def __init__(self, api: Api, leases: Sequence[str], changed: Callable[[], None]) -> None:
        self._watchers = [Watcher(api, *lease.split("/")) for lease in leases]
        self._changed = changed
        self.holder = ""  # of a lease that is held: who works in our stead
        self.known = asyncio.Event()  # set when every lease was looked at once, or may not be

    async def run(self) -> None:
        """Look at their leases until cancelled."""
        round_ = 0
        while True:
            await self.look()
            if self.holder and round_ % SAY_EVERY == 0:
                log.warning("another MPI operator is at work (%s): this one keeps still until it is gone", self.holder)
            round_ = round_ + 1 if self.holder else 0
            await asyncio.sleep(LOOK_EVERY)

    async def look(self) -> None:
        """Look once. What we may not see, or cannot, counts as it did before."""
        answered = True
        for watcher in self._watchers:
            try:
                await watcher.look()
            except (ApiError, UnreachableError) as error:
                log.debug("lease %s/%s: %s", watcher.namespace, watcher.name, error)
                answered = answered and isinstance(error, ApiError) and error.status in {401, 403}
        before, self.holder = self.holder, next((self._name(each) for each in self._watchers if each.held), "")
        if before and not self.holder:
            log.warning("the other MPI operator is gone: going on")
        if before != self.holder:
            self._changed()
        if answered:
            self.known.set()

    def _name(self, watcher: Watcher) -> str:
        return f"lease {watcher.namespace}/{watcher.name}, held by {watcher.seen.holder if watcher.seen else '?'}"
