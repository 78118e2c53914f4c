"""The worker pods of a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import eq
from typing import TYPE_CHECKING, Any, overload

from mpiboot.job import names
from mpiboot.job.plan import delivery, environment, keys, objects, pod_group, pods, sshd
from mpiboot.job.template import has_command, spec_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.job.arrangement import Arrangement, RoleArrangement
    from mpiboot.job.model import Job
    from mpiboot.job.settings import Settings

# A template may hold what only the server may set; a pod with it would be refused.
NOT_FOR_PODS = ("generateName", "creationTimestamp", "deletionTimestamp", "resourceVersion", "uid", "managedFields",
    "selfLink", "generation", "deletionGracePeriodSeconds")  # fmt: skip


SERVES = ["mpiboot", "worker"]


class Workers(Sequence[Mapping[str, Any]]):
    """The worker pods of a job, each made when it is asked for. What all of them share is made once."""

    def __init__(self, arrangement: Arrangement) -> None:
        self._make, self._count = maker(arrangement), arrangement.job.workers

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Mapping[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> Mapping[str, Any] | Sequence[Mapping[str, Any]]:
        wanted = range(self._count)[index]
        return self._make(wanted) if isinstance(wanted, int) else [self._make(each) for each in wanted]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]  # its pods are dictionaries


def maker(arrangement: Arrangement) -> Callable[[int], dict[str, Any]]:
    """A function from an index to that worker's pod. What all workers share is made once and is the same object."""
    job, role = arrangement.job, arrangement.worker
    assert role is not None
    added = additions(arrangement)
    if arrangement.gang:
        added = pod_group.joined(job, arrangement.gang, added)
    base = pods.with_additions(role.template, added, job.main_container)
    position = role.position
    shared = {key: value for key, value in base["metadata"].items() if key not in NOT_FOR_PODS}

    def make(index: int) -> dict[str, Any]:
        name = names.worker(job.name, index)
        containers = list(base["spec"]["containers"])
        variable = environment.entry("MPIBOOT_INDEX", str(index))
        containers[position] = {**containers[position], "env": [*containers[position]["env"], variable]}
        own_labels = {**shared["labels"], **names.pod_labels(job, "worker", index)}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**shared, **objects.metadata(job, name, own_labels)},
            "spec": {**base["spec"], "hostname": name, "containers": containers},
        }

    return make


def additions(arrangement: Arrangement) -> pods.Additions:
    """What a worker pod needs beyond its template."""
    job, role, settings = arrangement.job, arrangement.worker, arrangement.settings
    assert job.worker is not None
    assert role is not None
    mountless = arrangement.mountless
    return pods.Additions(
        labels={},
        environment=environment.of_worker(arrangement, keys.in_environment(job) if mountless else {}),
        volumes=[
            *(() if mountless else [keys.volume(arrangement, role)]),
            *([delivery.volume(settings)] if role.delivered else ()),
        ],
        spec={
            "subdomain": names.service(job.name),
            "restartPolicy": job.worker.restart_policy,
            "dnsConfig": searching(job, spec_of(role.template).get("dnsConfig") or {}, settings),
            **host_network(role.template),
            **({"automountServiceAccountToken": False} if mountless else {}),
        },
        container=sshd_fields(arrangement, role),
    )


def sshd_fields(arrangement: Arrangement, role: RoleArrangement) -> dict[str, Any]:
    """Command and probe of an image that is not ours; ours starts `mpiboot worker` by itself.

    Before v2beta1 an image's own command was the launcher's, so there a worker always gets a command.
    """
    job, container = arrangement.job, role.container
    fields: dict[str, Any] = {}
    if role.delivered:
        fields |= delivery.served(job, container)
    elif not has_command(container):
        if not role.carries_mpiboot:
            client = role.image == arrangement.launcher.image and arrangement.launch_mode != "in-place"
            needs = sshd.Needs(role.image, job.runtime.image, client=client)
            fields["command"] = sshd.command(
                job.ssh_auth_mount_path, verify=arrangement.verify_hosts, mountless=arrangement.mountless, needs=needs
            )
        elif job.dialect != "v2beta1":
            fields["command"] = SERVES
    if arrangement.launch_mode == "gate" and not container.get("startupProbe"):
        fields["startupProbe"] = sshd.probe(container, delivery.PORT if role.delivered else None)
    return fields


def searching(job: Job, dns: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """DNS settings that resolve the launcher's bare host name: Intel MPI and MPICH send a worker no other name."""
    domain = settings.cluster_domain or "cluster.local"
    search = f"{names.service(job.name)}.{job.namespace}.svc.{domain}"
    return {**dns, "searches": [*(dns.get("searches") or ()), search]}


def host_network(template: Mapping[str, Any]) -> dict[str, str]:
    """On a node's network a pod still has to resolve the names of the cluster."""
    return {"dnsPolicy": "ClusterFirstWithHostNet"} if spec_of(template).get("hostNetwork") else {}
