"""The job's ConfigMap and Service, and the metadata that all its objects have."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiboot.job import names
from mpiboot.job.plan import pods
from mpiboot.job.plan.host_lists import discovery_script, launchers_hostfile, published_hostfile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mpiboot.job.arrangement import Arrangement
    from mpiboot.job.model import Job

HOSTFILE, LAUNCHERS_HOSTFILE, DISCOVER = "hostfile", "hostfile.launcher", "discover_hosts.sh"
GUARD = "wait_for_workers.sh"


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


def config_map(arrangement: Arrangement) -> dict[str, Any]:
    """Hostfile and scripts. A launcher that takes ranks itself has a hostfile of its own, see `host_lists`."""
    job, domain = arrangement.job, arrangement.settings.cluster_domain
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(job, names.config_map(job.name), names.object_labels(job)),
        "data": config_data(arrangement, job, names.worker_hosts(job, domain)),
    }


def config_data(arrangement: Arrangement, job: Job, workers: Iterable[str]) -> dict[str, str]:
    """The files. The discovery script lists these workers, the hostfiles all of them."""
    cluster_domain = arrangement.settings.cluster_domain
    launcher = (names.launcher_host(job, cluster_domain),) if job.run_launcher_as_worker else ()
    return {
        HOSTFILE: published_hostfile(job, cluster_domain),
        DISCOVER: discovery_script((*launcher, *workers), job.slots_per_worker, job.dialect),
        **({LAUNCHERS_HOSTFILE: launchers_hostfile(job, cluster_domain)} if job.run_launcher_as_worker else {}),
        **({GUARD: guard()} if arrangement.launch_mode == "guard" else {}),
    }


@cache
def guard() -> str:
    """The script that waits for the workers and then runs the launcher's command."""
    return Path(__file__).with_name("guard.sh").read_text()


def config_volume(arrangement: Arrangement) -> pods.Volume:
    """The ConfigMap as the launcher mounts it."""
    job = arrangement.job
    items = [
        {"key": LAUNCHERS_HOSTFILE if job.run_launcher_as_worker else HOSTFILE, "path": HOSTFILE, "mode": 0o444},
        {"key": DISCOVER, "path": DISCOVER, "mode": 0o555},
        *([{"key": GUARD, "path": GUARD, "mode": 0o555}] if arrangement.launch_mode == "guard" else ()),
    ]
    source = {"configMap": {"name": names.config_map(job.name), "items": items}}
    return pods.Volume("mpi-job-config", source, names.CONFIG_DIR)


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
