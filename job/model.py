"""One frozen model of an MPI job of any API version. Readers make it, `plan` uses it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from mpiboot.job import mpi
from mpiboot.job.gang import SchedulingPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

Dialect = Literal["v2beta1", "v1", "v1alpha2", "v1alpha1"]
Role = Literal["launcher", "worker"]

ROOTS_SSH = "/root/.ssh"
OUR_USERS_SSH = "/home/mpiuser/.ssh"  # in our images


@dataclass(frozen=True)
class Replica:
    """The pods of one role. `template` is the user's own pod template: never change it in place."""

    replicas: int
    template: Mapping[str, Any]
    restart_policy: str


@dataclass(frozen=True)
class RunPolicy:
    """How long a job may run, how often it is tried, what stays after it. None: the cluster's default."""

    clean_pod_policy: Literal["None", "Running", "All"] = "None"
    ttl_seconds_after_finished: int | None = None
    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    suspend: bool = False
    scheduling_policy: SchedulingPolicy = field(default_factory=SchedulingPolicy)


@dataclass(frozen=True)
class Job:
    """An MPI job, defaults filled in and checked.

    `dialect` is the API version whose rules the job follows: it decides details such as the form of
    `discover_hosts.sh`. `api_version` is the version through which it was read; owner references name it.
    """

    name: str
    namespace: str
    launcher: Replica
    worker: Replica | None = None
    uid: str | None = None  # None: the job is on no API server
    api_version: str = "kubeflow.org/v2beta1"
    dialect: Dialect = "v2beta1"
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    slots_per_worker: int = 1
    implementation: str = mpi.DEFAULT.name
    ssh_auth_mount_path: str = ROOTS_SSH
    launcher_creation_policy: Literal["AtStartup", "WaitForWorkersReady"] = "AtStartup"
    run_launcher_as_worker: bool = False
    main_container: str = ""  # "": the first container of a template
    run_policy: RunPolicy = field(default_factory=RunPolicy)

    @property
    def runtime(self) -> mpi.Runtime:
        """The MPI runtime of its image."""
        return mpi.named(self.implementation)

    @property
    def workers(self) -> int:
        """How many worker pods the job wants."""
        return self.worker.replicas if self.worker else 0

    @property
    def hosts(self) -> int:
        """How many hosts can take ranks: the hostfile's lines."""
        return self.workers + self.run_launcher_as_worker

    @property
    def slots(self) -> int:
        """How many ranks mpirun starts when the user gives no number."""
        return self.hosts * self.slots_per_worker
