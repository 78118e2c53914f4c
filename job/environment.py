"""The environment variables that a job's containers get, by role and MPI runtime."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mpiboot.job import names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mpiboot.job.model import Job
    from mpiboot.job.settings import Settings

CONFIG_DIR = "/etc/mpi"
HOSTFILE = f"{CONFIG_DIR}/hostfile"
ADDRESSES_DIR = "/etc/mpiboot"
ADDRESSES = f"{ADDRESSES_DIR}/addresses"
SSH_ARGS = "-o ConnectionAttempts=10"

# With more hosts a runtime starts its daemons as a tree, by ssh from worker to worker, and workers have no key.
OPEN_MPI_FLAT_UP_TO = 64
INTEL_FLAT_UP_TO = 16


@dataclass(frozen=True)
class Environment:
    """`fixed` holds against what a template says, as users of v2beta1 know it; `usual` gives way to it."""

    fixed: Mapping[str, str | Mapping[str, Any]]
    usual: Mapping[str, str] = field(default_factory=dict)

    def added_to(self, given: Iterable[Any]) -> list[Any]:
        """A container's `env` list with these variables. They come last: the kubelet lets later ones win."""
        kept = [item for item in given if name_of(item) not in self.fixed]
        taken = {name_of(item) for item in kept}
        usual = {name: value for name, value in self.usual.items() if name not in taken}
        return [*kept, *(entry(name, value) for name, value in {**self.fixed, **usual}.items())]

    def lost(self, given: Iterable[Any]) -> list[str]:
        """The names in an `env` list whose values these variables replace by others."""
        return [
            name_of(item)
            for item in given
            if name_of(item) in self.fixed and item != entry(name_of(item), self.fixed[name_of(item)])
        ]


def entry(name: str, value: str | Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "value" if isinstance(value, str) else "valueFrom": value}


def name_of(item: Any) -> str:  # noqa: ANN401 - users' lists hold anything
    """The name in an item of an `env` list."""
    return str(item.get("name")) if isinstance(item, dict) else ""


def field_ref(path: str) -> dict[str, Any]:
    return {"fieldRef": {"fieldPath": path}}


def secret_ref(job: Job, key: str) -> dict[str, Any]:
    return {"secretKeyRef": {"name": names.secret(job.name), "key": key}}


def of_worker(job: Job, settings: Settings, *, checks_in: bool, keys: Mapping[str, Mapping[str, Any]]) -> Environment:
    """A worker's variables, all but its index."""
    reports = check_in(job, settings, pod=True, on=checks_in)
    return Environment({"K_MPI_JOB_ROLE": "worker", **of_both(job), **reports, **keys})


def of_launcher(
    job: Job, settings: Settings, *, host_keys: str, checks_in: bool, agents: Mapping[str, str] | None = None
) -> Environment:
    """A launcher's variables. Both names of Open MPI's settings: release 5 reads none of release 4's.

    `agents` name a program that mpirun calls instead of ssh.
    """
    fixed, usual = RUNTIMES[job.implementation](job)
    # A launcher without ranks must not take a GPU, whatever the container runtime hands out by default.
    no_gpu = {} if job.run_launcher_as_worker else {"NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""}
    ours = {
        "MPIBOOT_HOSTFILE": HOSTFILE,
        "MPIBOOT_ADDRESSES": ADDRESSES,
        "MPIBOOT_IMPLEMENTATION": job.implementation,
        **check_in(job, settings, pod=False, on=checks_in),
    }
    return Environment(
        {"K_MPI_JOB_ROLE": "launcher", **of_both(job), **ours, **fixed, **no_gpu},
        {"MPIBOOT_HOST_KEYS": host_keys, **usual, **(agents or {})},
    )


def of_both(job: Job) -> dict[str, str]:
    uid = {"MPIBOOT_UID": job.uid} if job.uid else {}
    return {"MPIBOOT_JOB": f"{job.namespace}/{job.name}", **uid, "MPIBOOT_SSH_DIR": job.ssh_auth_mount_path}


def check_in(job: Job, settings: Settings, *, pod: bool, on: bool) -> dict[str, str | Mapping[str, Any]]:
    """Where to report or listen. A worker also says which pod it is."""
    if not settings.checkin_urls or not on:
        return {}
    identity = {"MPIBOOT_POD_UID": field_ref("metadata.uid"), "MPIBOOT_POD_IP": field_ref("status.podIP")}
    return {
        "MPIBOOT_CHECKIN": " ".join(settings.checkin_urls),
        "MPIBOOT_TOKEN": secret_ref(job, "token"),
        **(identity if pod else {}),
    }


def open_mpi(job: Job) -> tuple[dict[str, str], dict[str, str]]:
    slots = str(job.slots_per_worker)
    fixed = {
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_default_hostfile": HOSTFILE,
        "OMPI_MCA_plm_rsh_args": SSH_ARGS,
        "OMPI_MCA_orte_set_default_slots": slots,
    }
    usual = {
        "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
        "PRTE_MCA_prte_default_hostfile": HOSTFILE,
        "PRTE_MCA_plm_ssh_args": SSH_ARGS,
        "PRTE_MCA_prte_set_default_slots": slots,
        # Two containers on a node do not see each other and would bind their first ranks to the same core.
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "PRTE_MCA_hwloc_default_binding_policy": "none",
        # Its daemons' threads forget ranks that end at once, and mpirun then waits for ever.
        "PRTE_MCA_odls_base_max_threads": "0",
    }
    if job.hosts > OPEN_MPI_FLAT_UP_TO:
        usual |= {"OMPI_MCA_plm_rsh_no_tree_spawn": "1", "PRTE_MCA_plm_ssh_no_tree_spawn": "1"}
    return fixed, usual


def intel(job: Job) -> tuple[dict[str, str], dict[str, str]]:
    fixed = {
        "I_MPI_HYDRA_HOST_FILE": HOSTFILE,
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": SSH_ARGS,
        "I_MPI_PERHOST": str(job.slots_per_worker),
    }
    return fixed, {"I_MPI_HYDRA_BRANCH_COUNT": "0"} if job.hosts > INTEL_FLAT_UP_TO else {}


def mpich(job: Job) -> tuple[dict[str, str], dict[str, str]]:  # noqa: ARG001 - all runtimes are called alike
    # MPICH 5 reads only the second of the two names.
    return {"HYDRA_HOST_FILE": HOSTFILE, "HYDRA_LAUNCH_EXTRA_ARGS": SSH_ARGS}, {"HYDRA_LAUNCHER_EXTRA_ARGS": SSH_ARGS}


RUNTIMES = {"OpenMPI": open_mpi, "Intel": intel, "MPICH": mpich}
