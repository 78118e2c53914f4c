"""The jobs of a namespace of a cluster, for `ps`, `logs`, `scale`, `delete` and `status`."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING

from mpiboot.engines.jobs import JobInfo
from mpiboot.engines.kubernetes.launcher_output import LauncherOutput
from mpiboot.engines.kubernetes.namespace_jobs import JobId
from mpiboot.engines.kubernetes.snapshot import Snapshot
from mpiboot.engines.kubernetes.status_text import status_text
from mpiboot.job import template
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from mpiboot.engines.kubernetes.cluster import Cluster
    from mpiboot.engines.output import Output
    from mpiboot.kube.api import Object

LOOK_EVERY = 0.5  # seconds


class KubernetesJobs:
    """The jobs of one namespace."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._jobs = cluster, cluster.jobs
        self.where = f" in namespace {cluster.jobs.namespace}"

    def all(self) -> list[JobInfo]:
        return sorted(map(_info, self._cluster.call(self._jobs.all())), key=lambda job: job.name)

    def logs(self, job: JobInfo, output: Output, *, follow: bool) -> None:
        if not self._cluster.call(self._logs(JobId(job.name, job.run), output, follow=follow)):
            raise UserError(f"the launcher of {job.name} has not started yet: mpiboot status {job.name}")

    def delete(self, job: JobInfo) -> None:
        self._cluster.call(self._jobs.delete(JobId(job.name, job.run)))

    def scale(self, job: JobInfo, workers: int) -> int:
        """The same; the operator adds or removes them after this returns."""
        return self._cluster.call(self._jobs.scale(JobId(job.name, job.run), workers))

    def status(self, job: JobInfo) -> str:
        """How the job stands, in several lines."""
        return status_text(self._cluster.call(self._jobs.look(JobId(job.name, job.run))))

    async def _logs(self, job: JobId, output: Output, *, follow: bool) -> bool:
        """Whether a launcher has printed anything."""
        launchers = LauncherOutput(self._jobs, output)
        while True:
            seen = await self._jobs.look(job, "launcher")
            launchers.update(seen, follow=follow)
            if seen.conditions.finished or not follow:
                await launchers.end()
                return launchers.begun
            await asyncio.sleep(LOOK_EVERY)


def _info(found: Object) -> JobInfo:
    metadata, spec = found["metadata"], found.get("spec") or {}
    replicas = {role.lower(): replica for role, replica in (spec.get("mpiReplicaSpecs") or {}).items()}
    launcher = (replicas.get("launcher") or {}).get("template") or {}
    worker = replicas.get("worker")
    main = template.main_container(launcher, str(spec.get("mainContainer") or ""))
    return JobInfo(
        name=metadata["name"],
        engine="kubernetes",
        state=str(Snapshot(found, (), {}).status.get("state") or "Submitted").lower(),
        workers=int(worker.get("replicas") or 1) if worker else 0,
        created=datetime.fromisoformat(metadata["creationTimestamp"]).timestamp(),
        image=str(main.get("image") or ""),
        run=metadata["uid"],
    )
