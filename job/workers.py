"""The worker pods of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpiboot.job import delivery, environment, keys, labels, mountless, names, objects, pods, sshd, trust

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mpiboot.job.model import Job, Replica
    from mpiboot.job.settings import Settings

# A template may hold what only the server may set; a pod with it would be refused.
NOT_FOR_PODS = ("generateName", "creationTimestamp", "deletionTimestamp", "resourceVersion", "uid", "managedFields",
    "selfLink", "generation", "deletionGracePeriodSeconds")  # fmt: skip


SERVES = ["mpiboot", "worker"]


def maker(job: Job, settings: Settings) -> Callable[[int], dict[str, Any]]:
    """A function from an index to that worker's pod. What all workers share is made once and is the same object."""
    assert job.worker is not None
    base = pods.dressed(job.worker.template, additions(job, job.worker, settings), job.main_container)
    position = pods.main_index(job.worker.template, job.main_container)
    shared = {key: value for key, value in base["metadata"].items() if key not in NOT_FOR_PODS}

    def make(index: int) -> dict[str, Any]:
        name = names.worker(job.name, index)
        containers = list(base["spec"]["containers"])
        variable = environment.entry("MPIBOOT_INDEX", str(index))
        containers[position] = {**containers[position], "env": [*containers[position]["env"], variable]}
        own_labels = {**shared["labels"], **labels.of_pod(job, "worker", index)}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**shared, **objects.metadata(job, name, own_labels)},
            "spec": {**base["spec"], "hostname": name, "containers": containers},
        }

    return make


def additions(job: Job, worker: Replica, settings: Settings) -> pods.Additions:
    """What a worker pod needs beyond its template."""
    template = worker.template
    container = pods.main_container(template, job.main_container)
    ours = trust.worker_is_ours(job, settings)
    verify = trust.host_keys(job, settings) == "verify"
    runs_mpiboot = (ours and not trust.has_command(container)) or trust.starts_mpiboot(container)
    delivered = trust.ssh_is_delivered(job, settings, "worker")
    private = keys.private_files(job, template, container, copied=runs_mpiboot or delivered)
    bare = mountless.wanted(job, worker, settings)
    return pods.Additions(
        labels={},
        environment=environment.of_worker(
            job, settings, checks_in=ours, keys=keys.in_environment(job) if bare else {}
        ),
        volumes=[
            *(() if bare else [keys.volume(job, "worker", private=private, verify=verify)]),
            *([delivery.volume(settings)] if delivered else ()),
        ],
        spec={
            "subdomain": names.service(job.name),
            "restartPolicy": worker.restart_policy,
            "dnsConfig": searching(job, pods.spec_of(template).get("dnsConfig") or {}, settings),
            **host_network(template),
            **({"automountServiceAccountToken": False} if bare else {}),
        },
        container=sshd_fields(job, settings, container, ours=ours, verify=verify),
    )


def sshd_fields(
    job: Job, settings: Settings, container: Mapping[str, Any], *, ours: bool, verify: bool
) -> dict[str, Any]:
    """Command and probe of an image that is not ours; ours starts `mpiboot worker` by itself.

    Before v2beta1 an image's own command was the launcher's, so there a worker is always told what to run.
    """
    fields: dict[str, Any] = {}
    delivered = trust.ssh_is_delivered(job, settings, "worker")
    if delivered:
        fields |= delivery.served(job, container)
    if ours and not trust.has_command(container) and job.dialect != "v2beta1":
        fields["command"] = SERVES
    if not ours and not delivered and not trust.has_command(container):
        image = str(container.get("image"))
        launchers = pods.main_container(job.launcher.template, job.main_container).get("image")
        client = image == launchers and trust.launcher_waits(job, settings) != "in-place"
        needs = sshd.Needs(image, job.implementation.lower(), client=client)
        fields["command"] = sshd.command(job.ssh_auth_mount_path, verify=verify, needs=needs)
    if trust.launcher_waits(job, settings) == "gate" and not sshd.has_probe(container):
        fields["startupProbe"] = sshd.probe(container, delivery.PORT if delivered else None)
    return fields


def searching(job: Job, dns: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """DNS settings that resolve the launcher's bare host name: Intel MPI and MPICH tell a worker only that."""
    domain = settings.cluster_domain or "cluster.local"
    search = f"{names.service(job.name)}.{job.namespace}.svc.{domain}"
    return {**dns, "searches": [*(dns.get("searches") or ()), search]}


def host_network(template: Mapping[str, Any]) -> dict[str, str]:
    """On a node's network a pod still has to resolve the names of the cluster."""
    return {"dnsPolicy": "ClusterFirstWithHostNet"} if pods.spec_of(template).get("hostNetwork") else {}
