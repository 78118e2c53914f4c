"""Checks before the operator works: the cluster's version, the CRD, and other operators for the same jobs."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from mpiboot.controller.lease import Watcher
from mpiboot.job.errors import UserError
from mpiboot.kube import kinds
from mpiboot.kube.api import Request
from mpiboot.kube.api_error import ApiError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpiboot.job.gang import Scheduler
    from mpiboot.kube.api import Api

log = logging.getLogger(__name__)

OLDEST = (1, 29)  # the first with the CRD's validation rules and the Jobs' podReplacementPolicy on by default
LOOK_EVERY = 5.0  # seconds between reads of the leases
SAY_EVERY = 12  # looks
LONGEST_PAUSE = 15.0  # seconds


class ClusterError(UserError):
    """The operator cannot work with this cluster."""

    exit_code = 1


async def check(api: Api, scheduler: Scheduler | None = None) -> None:
    """Return when the cluster fits. Raise ClusterError, with what to do, if it does not.

    An API server that is away comes back: the operator waits, because an exit would bring ever longer pauses.
    """
    pause = 1.0
    while True:
        try:
            await _check(api)
            if scheduler:
                await _check_groups(api, scheduler)
        except (ApiError, UnreachableError) as error:
            wanted = 0.0
            if isinstance(error, ApiError):
                wanted = error.retry_after or 0.0
                if not error.passing:
                    text = f"the API server at {api.connection.server} refuses the request: {error}"
                    raise ClusterError(text) from None
            log.warning("the API server at %s does not answer: %s", api.connection.server, error)
        else:
            return
        await api.outage.sleep(max(pause, wanted), least=wanted)
        pause = min(pause * 2, LONGEST_PAUSE)


async def _check(api: Api) -> None:
    version = await api.send(Request("GET", "/version"))
    try:
        found = await api.send(Request("GET", f"/apis/{kinds.MPI_JOB.api_version}"))
    except ApiError as error:
        if error.not_found:
            raise ClusterError(no_crd()) from None
        raise
    if (fault := version_fault(version)) is not None:
        raise ClusterError(fault)
    if not any(resource["name"] == kinds.MPI_JOB.plural for resource in found["resources"]):
        raise ClusterError(no_crd())


async def _check_groups(api: Api, scheduler: Scheduler) -> None:
    kind = kinds.POD_GROUPS[scheduler.api_version]
    try:
        found = await api.send(Request("GET", f"/apis/{kind.api_version}"))
    except ApiError as error:
        if not error.not_found:
            raise
        found = {"resources": []}
    if not any(resource["name"] == kind.plural for resource in found["resources"]):
        raise ClusterError(
            f"the cluster does not know {kind.name} of {kind.api_version}, which gang scheduling with {scheduler.name} "
            "needs: install that scheduler first, or start the operator without --gang-scheduling"
        )


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
    """Other MPI operators of the cluster. Two on one job would undo each other's work, so this one does nothing."""

    def __init__(self, api: Api, leases: Sequence[str], changed: Callable[[], None]) -> None:
        self._watchers = [Watcher(api, *lease.split("/")) for lease in leases]
        self._changed = changed
        self.holder = ""  # of a lease that is held
        self.known = asyncio.Event()  # set when every lease was read once, or access is refused

    async def run(self) -> None:
        """Read the leases until cancelled."""
        round_ = 0
        while True:
            await self.look()
            if self.holder and round_ % SAY_EVERY == 0:
                text = "another MPI operator is running (%s): this operator does nothing until the lease is free"
                log.warning(text, self.holder)
            round_ = round_ + 1 if self.holder else 0
            await asyncio.sleep(LOOK_EVERY)

    async def look(self) -> None:
        """Read each lease once. A lease that cannot be read counts as before."""
        answered = True
        for watcher in self._watchers:
            try:
                await watcher.look()
            except (ApiError, UnreachableError) as error:
                log.debug("lease %s/%s: %s", watcher.namespace, watcher.name, error)
                watcher.unread()
                answered = answered and isinstance(error, ApiError) and error.status in {401, 403}
        before, self.holder = self.holder, next((self._name(each) for each in self._watchers if each.held), "")
        if before and not self.holder:
            log.warning("the lease of the other MPI operator is free: this operator continues")
        if before != self.holder:
            self._changed()
        if answered:
            self.known.set()

    def _name(self, watcher: Watcher) -> str:
        return f"lease {watcher.namespace}/{watcher.name}, held by {watcher.seen.holder if watcher.seen else '?'}"
