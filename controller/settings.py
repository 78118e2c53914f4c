"""The operator's settings: each field of Settings makes a flag, a variable, its help and its default."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mpiboot.job.errors import UserError
from mpiboot.job.gpu_units import DEFAULT_PER_NODE
from mpiboot.job.read.fields import MOST_WORKERS, MOST_WORKERS_EVER
from mpiboot.job.settings import OUR_IMAGES
from mpiboot.job.settings import Settings as JobSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "MPIBOOT_OPERATOR_"


@dataclass(frozen=True)
class Option:
    """One setting as the command line and the documentation need it. Flag and variable follow from the field's name."""

    name: str
    default: str | int | bool
    help: str
    least: int | None = None
    most: int | None = None
    choices: tuple[str, ...] = ()

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()


T = TypeVar("T", str, int, bool)


def setting(
    default: T, help_text: str, *, least: int | None = None, most: int | None = None, choices: tuple[str, ...] = ()
) -> T:
    """A field of Settings: its default, its help, and the values that it may have."""
    metadata = {"help": help_text, "least": least, "most": most, "choices": choices}
    found: T = field(default=default, metadata=metadata)
    return found


@dataclass(frozen=True)
class Settings:
    """What the operator was started with. Each line is a flag, a variable, and a value of the chart's `settings`."""

    kubeconfig: str = setting("", "Kubeconfig file; without one $KUBECONFIG, else the pod's service account.")
    namespace: str = setting("", "The only namespace whose MPIJobs the operator runs; empty: all namespaces.")
    lock_namespace: str = setting("", "Namespace of the leader's Lease; empty: the operator's own.")
    leader_election: bool = setting(True, "Elect a leader among the replicas, by a Lease.")  # noqa: FBT003 (a default)
    lease_seconds: int = setting(15, "Seconds after which another replica replaces a silent leader.", least=3)
    listen: str = setting("0.0.0.0", "Address of the check-in service and of health and metrics.")  # noqa: S104 (a service)
    monitoring_port: int = setting(8080, "TCP port of /healthz, /readyz and /metrics; 0: none.", least=0)
    checkin_port: int = setting(8081, "TCP port on which workers check in; 0: no check-in service.", least=0)
    checkin_urls: str = setting(
        "", "URLs under which pods reach the check-in service, separated by spaces; empty: $POD_IP and port."
    )
    checkin_service: str = setting("", "Service of all replicas' check-in ports, in the operator's namespace.")
    cluster_domain: str = setting("", "Domain that ends host names, such as cluster.local; empty: names end with .svc.")
    own_images: str = setting(
        OUR_IMAGES, "Regular expression of images that contain mpiboot: their launchers wait for workers by themselves."
    )
    gpus_per_node: int = setting(DEFAULT_PER_NODE, "GPUs of a node, for v1alpha1 jobs that do not give it.", least=1)
    delivery_image: str = setting(
        "", "Image that adds sshd and ssh to images without them, such as mpiboot/delivery:VERSION; empty: none."
    )
    gang_scheduling: str = setting(
        "",
        "Scheduler that starts all pods of a job together: volcano, scheduler-plugins, or the name of a scheduler "
        "that has the coscheduling plugin; empty: each pod starts by itself.",
    )
    mount_keys: bool = setting(
        False,  # noqa: FBT003 (a default)
        "Mount keys and API token in every worker, also in those that start sooner without any volume.",
    )
    key_type: str = setting(
        "ed25519", "Type of the jobs' SSH keys; ecdsa where FIPS rules apply.", choices=("ed25519", "ecdsa")
    )
    max_workers: int = setting(
        MOST_WORKERS, "Workers that one job may have; the operator refuses a job with more.",
        least=1, most=MOST_WORKERS_EVER,
    )  # fmt: skip
    workers: int = setting(16, "Jobs that the operator handles at the same time.", least=1)
    concurrency: int = setting(64, "Requests to the API server at the same time.", least=1)
    peer_leases: str = setting(
        "mpi-operator/mpi-operator kubeflow/mpi-operator",
        "Leases, NAMESPACE/NAME, of other MPI operators: while any of them is held, this operator does nothing.",
    )
    log_level: str = setting(
        "info", "Least level of the messages in the log.", choices=("debug", "info", "warning", "error")
    )
    log_format: str = setting("json", "Form of the log's lines.", choices=("json", "text"))

    def for_jobs(self, checkin_urls: tuple[str, ...]) -> JobSettings:
        """The part that decides about each job's plan."""
        return JobSettings(
            self.own_images,
            cluster_domain=self.cluster_domain,
            checkin_urls=checkin_urls,
            delivery_image=self.delivery_image,
            units_per_node=self.gpus_per_node,
            max_workers=self.max_workers,
            gang_scheduling=self.gang_scheduling,
            mount_keys=self.mount_keys,
        )


OPTIONS = tuple(Option(each.name, cast("Any", each.default), **each.metadata) for each in fields(Settings))


def make(values: Mapping[str, Any]) -> Settings:
    """Settings from values by name; what is not given has its default. One error names everything that is wrong."""
    settings = Settings(**values)
    faults = [
        f"{option.flag} (${option.variable}): must be at least {option.least}, is {getattr(settings, option.name)}"
        for option in OPTIONS
        if option.least is not None and getattr(settings, option.name) < option.least
    ]
    faults += [
        f"{option.flag} (${option.variable}): must be at most {option.most}, is {getattr(settings, option.name)}"
        for option in OPTIONS
        if option.most is not None and getattr(settings, option.name) > option.most
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
