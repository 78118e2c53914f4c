"""The MPIJobs of one namespace: create, find, look at, resize and delete them, and read the logs of their pods."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiboot.engines.jobs import not_elastic
from mpiboot.engines.kubernetes.snapshot import Snapshot
from mpiboot.job import elastic, names, template
from mpiboot.job.elastic_faults import out_of_range
from mpiboot.job.errors import UserError
from mpiboot.job.job_annotations import RUN
from mpiboot.job.read.manifest import Manifest
from mpiboot.job.read.read import read
from mpiboot.kube import channels, kinds, pull_errors
from mpiboot.kube.api_error import ApiError
from mpiboot.kube.conditions import is_finished
from mpiboot.kube.pod_projection import PodView, pod_view

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from mpiboot.kube.api import Api, Object
    from mpiboot.kube.channels import Channels


class NoJobError(UserError):
    """The job is not on the cluster, or not any more."""

    def __init__(self, name: str, namespace: str) -> None:
        super().__init__(f"there is no MPIJob {name} in namespace {namespace}")


@dataclass(frozen=True)
class JobId:
    """One job. Another of its name, made later, has another uid."""

    name: str
    uid: str


class NamespaceJobs:
    """The jobs of one namespace."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self.namespace = namespace

    async def create(self, manifest: Mapping[str, Any], run: str) -> JobId:
        """The job that the cluster made of a manifest. `run` marks it: see `of_run`."""
        metadata = manifest["metadata"]
        annotations = {**(metadata.get("annotations") or {}), RUN: run}
        marked = {**manifest, "metadata": {**metadata, "namespace": self.namespace, "annotations": annotations}}
        try:
            return _id(await self._api.create(kinds.MPI_JOB, self.namespace, marked))
        except ApiError as error:
            if error.not_found or error.passing:
                raise
            raise UserError(f"the cluster does not take the job: {error}") from None

    async def of_run(self, name: str, run: str) -> JobId | None:
        """The job that a run made; for a run that does not know whether its request arrived."""
        try:
            found = await self._get(name)
        except NoJobError:
            return None
        return _id(found) if (found["metadata"].get("annotations") or {}).get(RUN) == run else None

    async def all(self) -> list[Object]:
        """All MPIJobs."""
        return [found async for page, _ in self._api.pages(kinds.MPI_JOB, self.namespace) for found in page]

    async def delete(self, job: JobId) -> None:
        """Delete the job; nothing happens if it is gone."""
        await self._api.delete(kinds.MPI_JOB, self.namespace, job.name, job.uid)

    async def scale(self, job: JobId, workers: int, warn: Callable[[str], None]) -> int:
        """Give an elastic job so many workers; how many it wanted before."""
        found = await self._get(job.name)
        known = read(Manifest(found)).job
        size = elastic.of_job(known)
        if is_finished(found.get("status") or {}):
            raise UserError(f"{job.name} has ended, so it cannot be resized")
        if size is None:
            raise UserError(not_elastic(job.name))
        if wrong := out_of_range(size, workers, known.slots_per_worker):
            raise UserError(f"{job.name}: {wrong}")
        queue = (found["metadata"].get("labels") or {}).get(names.QUEUE_LABEL)
        if queue and workers != known.workers:
            warn(
                f"{job.name} is in Kueue's queue {queue}: Kueue suspends a job that is resized, which ends all its "
                f"pods, and starts it again when the queue has room for {workers} workers"
            )
        patch = {"metadata": {"uid": job.uid}, "spec": {"mpiReplicaSpecs": {"Worker": {"replicas": workers}}}}
        try:
            await self._api.patch(kinds.MPI_JOB, self.namespace, job.name, patch)
        except ApiError as error:
            raise UserError(f"the cluster does not change the job: {error}") from None
        return known.workers

    async def look(self, wanted: JobId, role: str = "") -> Snapshot:
        """The job as it is, with its pods or those of one role. Raises NoJobError, and ApiError for other refusals."""
        job = await self._get(wanted.name)
        if wanted.uid != job["metadata"]["uid"]:
            raise NoJobError(wanted.name, self.namespace)
        selector = f"{names.JOB_LABEL}={wanted.name}" + (f",{names.ROLE_LABEL}={role}" if role else "")
        main = _main_container(job)
        found: list[PodView] = []
        codes: dict[str, int] = {}
        async for page, _ in self._api.pages(kinds.POD, self.namespace, labelSelector=selector):
            for each in page:
                view = pod_view(each)
                # Pods of an earlier job of this name may not be gone yet.
                if view and view.meta.created >= job["metadata"]["creationTimestamp"]:
                    found.append(view)
                    if (code := _exit_code(each, main)) is not None:
                        codes[view.name] = code
        return Snapshot(job, tuple(found), codes)

    async def pull_errors(self, job: JobId) -> list[str]:
        """The container runtimes' own words about images of a job that cannot be pulled, each once."""
        selector = f"{names.JOB_LABEL}={job.name}"
        pods = [each async for page, _ in self._api.pages(kinds.POD, self.namespace, labelSelector=selector)
                for each in page]  # fmt: skip
        containers = (each for pod in pods for each in (pod.get("status") or {}).get("containerStatuses") or ())
        return list(dict.fromkeys(filter(None, map(pull_errors.text_of, containers))))

    async def events(self, wanted: JobId) -> list[Object]:
        """The events about the job, about its pods and about the Job of its launcher."""
        job = await self._get(wanted.name)
        created = job["metadata"]["creationTimestamp"]
        found = []
        for kind in ("MPIJob", "Job", "Pod"):
            own = kind == "MPIJob"
            selector = f"involvedObject.kind={kind}" + (f",involvedObject.name={wanted.name}" if own else "")
            async for page, _ in self._api.pages(kinds.EVENT, self.namespace, fieldSelector=selector):
                found += [each for each in page if own or _is_of(each, wanted.name)]
        # Events of an earlier job of this name may still be there.
        return [each for each in found if each["metadata"]["creationTimestamp"] >= created]

    async def pod(self, name: str) -> Object:
        """A pod. ApiError if there is none."""
        return await self._api.get(kinds.POD, self.namespace, name)

    def log(self, pod: str, container: str, *, follow: bool, since: str) -> AsyncIterator[bytes]:
        """What a container has printed since a time, each line with its own time; with `follow` until it ends."""
        params = {"container": container, "timestamps": "true"}
        params |= ({"follow": "true"} if follow else {}) | ({"sinceTime": since} if since else {})
        return self._api.text(kinds.POD.path(self.namespace, pod, "log"), **params)

    async def execute(self, pod: str, container: str, command: Sequence[str], *, tty: bool = False) -> Channels:
        """A program that is started in a container; with a terminal, if `tty`."""
        return await channels.execute(self._api, self.namespace, pod, container, command, tty=tty)

    async def attach(self, pod: str, container: str, *, stdin: bool, output: bool) -> Channels:
        """The streams of a container's first process."""
        return await channels.attach(self._api, self.namespace, pod, container, stdin=stdin, output=output)

    async def _get(self, name: str) -> Object:
        try:
            return await self._api.get(kinds.MPI_JOB, self.namespace, name)
        except ApiError as error:
            if error.not_found:
                raise NoJobError(name, self.namespace) from None
            raise


def main_container(job: Object, pod: Object) -> str:
    """The name of the container of a pod that runs the job."""
    return str(template.main_container(pod, _main_container(job)).get("name"))


def _is_of(event: Object, job: str) -> bool:
    """Whether an event is about the launcher or a worker of a job, by the name of the object."""
    rest = str((event.get("involvedObject") or {}).get("name")).removeprefix(f"{job}-")
    return rest.startswith("launcher") or bool(re.fullmatch(r"worker-\d+", rest))


def _id(found: Object) -> JobId:
    return JobId(found["metadata"]["name"], found["metadata"]["uid"])


def _main_container(job: Object) -> str:
    return str((job.get("spec") or {}).get("mainContainer") or "")


def _exit_code(pod: Object, main: str) -> int | None:
    """Of the pod's main container, if it has ended."""
    name = template.main_container(pod, main).get("name")
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        if container.get("name") == name and (ended := (container.get("state") or {}).get("terminated")):
            return int(ended.get("exitCode", 1))
    return None
