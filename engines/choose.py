"""The engine for a new job, and the engines whose jobs can be listed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpiboot.containers.endpoint import NoEngineError
from mpiboot.engines.jobs import NoSuchJobError, named
from mpiboot.engines.records.recorded_jobs import RecordedJobs
from mpiboot.job.errors import UserError
from mpiboot.kube.configured import is_configured

if TYPE_CHECKING:
    from collections.abc import Callable

    from docker import APIClient

    from mpiboot.engines.jobs import JobInfo, Jobs


def docker_or_local(wanted: str | None, note: Callable[[str], None]) -> APIClient | None:
    """The Docker engine's client, or None for processes on this machine."""
    if wanted == "local":
        return None
    from mpiboot.engines.docker import client

    try:
        return client.connect()
    except NoEngineError as error:
        if wanted == "docker":
            raise
        note(f"{error}\nmpiboot: the job runs as processes of this machine instead (--engine local)")
        return None


@dataclass(frozen=True)
class Where:
    """Where a command looks for jobs, as its options say. A namespace or a context is of a cluster."""

    engine: str | None = None
    namespace: str | None = None
    context: str | None = None

    @property
    def on_cluster(self) -> bool:
        return self.engine == "kubernetes" or bool(self.namespace or self.context)

    def check(self) -> None:
        """Raise if the options do not go together."""
        option = "--namespace" if self.namespace else "--context"
        if self.on_cluster and self.engine not in {None, "kubernetes"}:
            raise UserError(f"{option} goes with --engine kubernetes; {self.engine} has no namespaces and contexts")


def jobs_of_engines(where: Where | None = None) -> dict[str, Jobs]:
    """The jobs of each engine of this machine that answers, by the engine's name, or those that `where` names.

    Jobs of a cluster, which may be far away, are listed only if `where` names it.
    """
    where = where or Where()
    where.check()
    if where.on_cluster:
        return {"kubernetes": _of_cluster(where)}
    only = where.engine
    found: dict[str, Jobs] = {}
    if only in {None, "docker"}:
        try:
            from mpiboot.engines.docker import client
            from mpiboot.engines.docker.jobs import DockerJobs

            found["docker"] = RecordedJobs("docker", DockerJobs(client.connect()))
        except NoEngineError:
            if only:
                raise
            found["docker"] = RecordedJobs("docker", None)
    if only in {None, "local"}:
        from mpiboot.engines.local.jobs import LocalJobs

        found["local"] = RecordedJobs("local", LocalJobs())
    return found


def find(name: str, where: Where) -> tuple[Jobs, JobInfo]:
    """The job of that name: on this machine, else in the kubeconfig's cluster, unless `where` names one of them."""
    engines = jobs_of_engines(where)
    try:
        found = named(name, engines)[0]
    except NoSuchJobError as error:
        if where != Where() or not is_configured():
            raise
        engines = {"kubernetes": _of_cluster(where)}
        try:
            found = named(name, engines)[0]
        except UserError as other:
            kind = NoSuchJobError if isinstance(other, NoSuchJobError) else UserError
            raise kind(f"{error}; on the cluster: {other}") from None
    return engines[found.engine], found


def _of_cluster(where: Where) -> Jobs:
    from mpiboot.engines.kubernetes.cluster import Cluster
    from mpiboot.engines.kubernetes.jobs import KubernetesJobs

    return KubernetesJobs(Cluster(where.namespace, where.context))
