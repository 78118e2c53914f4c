"""One job of a cluster as its user sees it: create, look, read its output, delete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiboot.controller import kinds
from mpiboot.controller.api_error import ApiError
from mpiboot.controller.conditions import Conditions
from mpiboot.controller.status import is_finished
from mpiboot.controller.view_pod import PodView, pod_view
from mpiboot.job import elastic, labels
from mpiboot.job.elastic_faults import out_of_range
from mpiboot.job.errors import UserError
from mpiboot.job.manifest import Manifest
from mpiboot.job.read import read

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from mpiboot.controller.api import Api, Object


@dataclass(frozen=True)
class Look:
    """A job and its pods at one moment."""

    job: Object
    pods: tuple[PodView, ...]
    exit_codes: Mapping[str, int]  # of pods that ended, by name

    @property
    def status(self) -> Object:
        found: Object = self.job.get("status") or {}
        return found

    @property
    def conditions(self) -> Conditions:
        return Conditions(tuple(self.status.get("conditions") or ()))

    def of(self, role: str) -> tuple[PodView, ...]:
        """The role's pods: workers by number, launchers in the order in which they were made."""
        pods = [pod for pod in self.pods if pod.role == role]
        by_number = role == "worker"
        return tuple(sorted(pods, key=lambda pod: (pod.index if by_number else 0, pod.meta.created, pod.name)))


class Remote:
    """The jobs of one namespace. Refusals end as UserError."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self.namespace = namespace

    async def create(self, manifest: Mapping[str, Any]) -> None:
        try:
            await self._api.create(kinds.MPI_JOB, self.namespace, manifest)
        except ApiError as error:
            raise UserError(f"the cluster does not take the job: {error}") from None

    async def delete(self, name: str) -> None:
        found = await self._get(name)
        await self._api.delete(kinds.MPI_JOB, self.namespace, name, found["metadata"]["uid"])

    async def scale(self, name: str, workers: int) -> int:
        """Give an elastic job so many workers; how many it wanted before."""
        found = await self._get(name)
        job = read(Manifest(found)).job
        size = elastic.of_job(job)
        if is_finished(found.get("status") or {}):
            raise UserError(f"{name} has ended, so it cannot be resized")
        if size is None:
            raise UserError(
                f"{name} is not elastic, so it keeps the workers it began with: its command has no "
                "--host-discovery-script, and MPIBOOT_MIN_WORKERS is not set"
            )
        if wrong := out_of_range(size, workers, job.slots_per_worker):
            raise UserError(f"{name}: {wrong}")
        patch = {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": workers}}}}
        try:
            await self._api.patch(kinds.MPI_JOB, self.namespace, name, patch)
        except ApiError as error:
            raise UserError(f"the cluster does not change the job: {error}") from None
        return job.workers

    async def look(self, name: str) -> Look:
        job = await self._get(name)
        pods: list[PodView] = []
        codes: dict[str, int] = {}
        async for page, _ in self._api.pages(kinds.POD, self.namespace, labelSelector=f"{labels.JOB_NAME}={name}"):
            for each in page:
                if view := pod_view(each):
                    pods.append(view)
                for container in (each.get("status") or {}).get("containerStatuses") or ():
                    if ended := (container.get("state") or {}).get("terminated"):
                        codes.setdefault(view.name if view else "", ended.get("exitCode", 1))
        return Look(job, tuple(pods), codes)

    async def output(self, pod: str, *, follow: bool) -> AsyncIterator[bytes]:
        """What a pod's main container has printed; with `follow` also what it prints until it ends."""
        path = kinds.POD.path(self.namespace, pod, "log")
        params = {"follow": "true"} if follow else {}
        try:
            async for chunk in self._api.text(path, **params):
                yield chunk
        except ApiError as error:
            raise UserError(f"no output of {pod}: {error}") from None

    async def _get(self, name: str) -> Object:
        try:
            return await self._api.get(kinds.MPI_JOB, self.namespace, name)
        except ApiError as error:
            if error.not_found:
                raise UserError(f"there is no MPIJob {name} in namespace {self.namespace}") from None
            raise UserError(f"the cluster does not show the job: {error}") from None
