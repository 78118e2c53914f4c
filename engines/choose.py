"""The engine for a new job, and the engines whose jobs can be listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.containers.endpoint import NoEngineError
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from docker import APIClient

    from mpiboot.engines.jobs import Jobs


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


def jobs_of_engines(only: str | None = None, namespace: str | None = None) -> dict[str, Jobs]:
    """The jobs of each engine of this machine that answers, by the engine's name; with `only` of this one.

    Jobs of a cluster, which may be far away, are listed only if `only` names it.
    """
    found: dict[str, Jobs] = {}
    if namespace and only != "kubernetes":
        raise UserError("--namespace goes with --engine kubernetes; other engines have no namespaces")
    if only == "kubernetes":
        from mpiboot.engines.kubernetes.cluster import Cluster
        from mpiboot.engines.kubernetes.jobs import KubernetesJobs

        return {"kubernetes": KubernetesJobs(Cluster(namespace))}
    if only in {None, "docker"}:
        try:
            from mpiboot.engines.docker import client
            from mpiboot.engines.docker.jobs import DockerJobs

            found["docker"] = DockerJobs(client.connect())
        except NoEngineError:
            if only:
                raise
    if only in {None, "local"}:
        from mpiboot.engines.local.jobs import LocalJobs

        found["local"] = LocalJobs()
    return found
