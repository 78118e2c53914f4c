"""The operator's settings: one table that makes the flags, the variables, the help and the defaults."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiboot.job.errors import UserError
from mpiboot.job.settings import OUR_IMAGES
from mpiboot.job.units import DEFAULT_PER_NODE

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "MPIBOOT_OPERATOR_"


@dataclass(frozen=True)
class Option:
    """One setting. `name` is a field of Settings; the flag and the variable follow from it."""

    name: str
    default: str | int | bool
    help: str
    least: int | None = None
    choices: tuple[str, ...] = ()

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()


OPTIONS = (
    Option("kubeconfig", "", "Kubeconfig file; without one $KUBECONFIG, else the pod's service account."),
    Option("namespace", "", "Only look after MPIJobs of this namespace; empty: all namespaces."),
    Option("lock_namespace", "", "Namespace of the leader's Lease; empty: the operator's own."),
    Option("leader_election", True, "Take turns with other replicas by a Lease."),  # noqa: FBT003 (a default)
    Option("lease_seconds", 15, "Seconds after which a silent leader is replaced.", least=3),
    Option("listen", "0.0.0.0", "Address of the check-in service and of health and metrics."),  # noqa: S104 (a service)
    Option("monitoring_port", 8080, "TCP port of /healthz, /readyz and /metrics; 0: none.", least=0),
    Option("checkin_port", 8081, "TCP port on which workers check in; 0: no check-in service.", least=0),
    Option("checkin_urls", "", "Where pods reach the check-in service, separated by spaces; empty: $POD_IP and port."),
    Option("checkin_service", "", "Service of all replicas' check-in ports, in the operator's namespace."),
    Option("cluster_domain", "", "Domain that ends host names, such as cluster.local; empty: names end with .svc."),
    Option("own_images", OUR_IMAGES, "Regular expression of images that carry mpiboot: launchers wait in place."),
    Option("gpus_per_node", DEFAULT_PER_NODE, "GPUs of a node, for v1alpha1 jobs that do not say.", least=1),
    Option("delivery_image", "", "Image that brings sshd and ssh to images without, such as mpiboot/delivery:VERSION;"
           " empty: none is brought."),
    Option("mount_keys", False, "Mount keys and API token in every worker, also where it would start sooner without"  # noqa: FBT003 (a default)
           " any volume."),
    Option("key_type", "ed25519", "Type of the jobs' SSH keys; ecdsa where FIPS rules apply.",
           choices=("ed25519", "ecdsa")),
    Option("workers", 16, "Jobs that are looked at simultaneously.", least=1),
    Option("concurrency", 64, "Requests to the API server at the same time.", least=1),
    Option("peer_leases", "mpi-operator/mpi-operator kubeflow/mpi-operator", "Leases, NAMESPACE/NAME, of other MPI"
           " operators: while one is held this one keeps still."),
    Option("log_level", "info", "How much to log.", choices=("debug", "info", "warning", "error")),
    Option("log_format", "json", "Form of the log's lines.", choices=("json", "text")),
)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """What the operator was started with, checked."""

    kubeconfig: str
    namespace: str
    lock_namespace: str
    leader_election: bool
    lease_seconds: int
    listen: str
    monitoring_port: int
    checkin_port: int
    checkin_urls: str
    checkin_service: str
    cluster_domain: str
    own_images: str
    delivery_image: str
    gpus_per_node: int
    mount_keys: bool
    key_type: str
    workers: int
    concurrency: int
    peer_leases: str
    log_level: str
    log_format: str


def defaults() -> dict[str, str | int | bool]:
    return {option.name: option.default for option in OPTIONS}


def make(values: Mapping[str, Any]) -> Settings:
    """Settings from values by name; what is not given has its default. All that is wrong is said at once."""
    settings = Settings(**{**defaults(), **values})
    faults = [
        f"{option.flag} (${option.variable}): must be at least {option.least}, is {getattr(settings, option.name)}"
        for option in OPTIONS
        if option.least is not None and getattr(settings, option.name) < option.least
    ]
    faults += [
        f"{option.flag} (${option.variable}): must be one of {', '.join(option.choices)}, is {value!r}"
        for option in OPTIONS
        if option.choices and (value := getattr(settings, option.name)) not in option.choices
    ]
    try:
        re.compile(settings.own_images)
    except re.error as error:
        faults.append(f"--own-images: no regular expression: {error}")
    faults += [
        f"--peer-leases: must be NAMESPACE/NAME, is {lease!r}"
        for lease in settings.peer_leases.split()
        if lease.count("/") != 1
    ]
    if faults:
        raise UserError("\n".join(faults))
    return settings
