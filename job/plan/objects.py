"""The job's ConfigMap and Service, and the metadata that all its objects have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpiboot.job import names
from mpiboot.job.plan import environment, pods
from mpiboot.job.plan.host_lists import discovery_script, launchers_hostfile, published_hostfile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mpiboot.job.model import Job
    from mpiboot.job.settings import Settings

HOSTFILE, LAUNCHERS_HOSTFILE, DISCOVER = "hostfile", "hostfile.launcher", "discover_hosts.sh"


def metadata(job: Job, name: str, its_labels: Mapping[str, str]) -> dict[str, Any]:
    """Name, namespace, labels, and the owner if an API server knows it."""
    named = {"name": name, "namespace": job.namespace, "labels": dict(its_labels)}
    return {**named, **owner(job)}


def owner(job: Job) -> dict[str, Any]:
    """Ownership by the MPIJob: with it goes whatever belongs to it."""
    if job.uid is None:
        return {}
    reference = {
        "apiVersion": job.api_version,
        "kind": "MPIJob",
        "name": job.name,
        "uid": job.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {"ownerReferences": [reference]}


def config_map(job: Job, settings: Settings) -> dict[str, Any]:
    """Hostfile and discovery script. A launcher that takes ranks itself has a hostfile of its own, see `host_lists`."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(job, names.config_map(job.name), names.object_labels(job)),
        "data": config_data(job, names.worker_hosts(job, settings.cluster_domain), settings.cluster_domain),
    }


def config_data(job: Job, workers: Iterable[str], cluster_domain: str) -> dict[str, str]:
    """The files. The script lists these workers, the hostfiles all of them."""
    launcher = (names.launcher_host(job, cluster_domain),) if job.run_launcher_as_worker else ()
    return {
        HOSTFILE: published_hostfile(job, cluster_domain),
        DISCOVER: discovery_script((*launcher, *workers), job.slots_per_worker, job.dialect),
        **({LAUNCHERS_HOSTFILE: launchers_hostfile(job, cluster_domain)} if job.run_launcher_as_worker else {}),
    }


def config_volume(job: Job) -> pods.Volume:
    """The ConfigMap as the launcher mounts it."""
    items = [
        {"key": LAUNCHERS_HOSTFILE if job.run_launcher_as_worker else HOSTFILE, "path": HOSTFILE, "mode": 0o444},
        {"key": DISCOVER, "path": DISCOVER, "mode": 0o555},
    ]
    source = {"configMap": {"name": names.config_map(job.name), "items": items}}
    return pods.Volume("mpi-job-config", source, environment.CONFIG_DIR)


def service(job: Job, *, publish_not_ready: bool) -> dict[str, Any]:
    """The headless Service that gives every pod a DNS name."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(job, names.service(job.name), names.object_labels(job)),
        "spec": {
            "clusterIP": "None",
            "selector": names.selector(job),
            "publishNotReadyAddresses": publish_not_ready,
        },
    }
