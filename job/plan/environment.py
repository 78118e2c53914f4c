"""The environment variables that a job's containers get, by role and MPI runtime."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mpiboot.job import job_annotations, names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mpiboot.job.arrangement import Arrangement
    from mpiboot.job.model import Job
    from mpiboot.job.settings import Settings

HOSTFILE = f"{names.CONFIG_DIR}/hostfile"
ADDRESSES_DIR = "/etc/mpiboot"
ADDRESSES = f"{ADDRESSES_DIR}/addresses"
SSH_ARGS = "-o ConnectionAttempts=10"


@dataclass(frozen=True)
class Environment:
    """`fixed` variables replace those of a template, as the operator for v2beta1 did; `usual` ones do not."""

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


def of_worker(arrangement: Arrangement, keys: Mapping[str, Mapping[str, Any]]) -> Environment:
    """A worker's variables, all but its index."""
    job, role = arrangement.job, arrangement.worker
    assert role is not None
    reports = check_in(job, arrangement.settings, pod=True) if role.carries_mpiboot else {}
    return Environment({"K_MPI_JOB_ROLE": "worker", **of_both(job), **reports, **keys})


def of_launcher(arrangement: Arrangement, ssh: str = "") -> Environment:
    """A launcher's variables. `ssh` is a program that mpirun calls instead of the image's."""
    job = arrangement.job
    found = of_runtime(job)
    fixed = {name: value for name, value in found.items() if name in job.runtime.fixed}
    # A launcher without ranks must not take a GPU, which some container runtimes give to every container.
    no_gpu = {} if job.run_launcher_as_worker else {"NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""}
    ours = {
        "MPIBOOT_HOSTFILE": HOSTFILE,
        "MPIBOOT_ADDRESSES": ADDRESSES,
        **(check_in(job, arrangement.settings, pod=False) if arrangement.waits_by_itself else {}),
    }
    return Environment(
        {"K_MPI_JOB_ROLE": "launcher", **of_both(job), **ours, **fixed, **no_gpu},
        {
            "MPIBOOT_HOST_KEYS": "verify" if arrangement.verify_hosts else "off",
            **(job_annotations.variables(job.annotations) if arrangement.launch_mode == "in-place" else {}),
            **found,
            **(dict.fromkeys(job.runtime.ssh_variables, ssh) if ssh else {}),
        },
    )


def of_both(job: Job) -> dict[str, str]:
    uid = {"MPIBOOT_UID": job.uid} if job.uid else {}
    return {"MPIBOOT_JOB": f"{job.namespace}/{job.name}", **uid, "MPIBOOT_SSH_DIR": job.ssh_auth_mount_path}


def check_in(job: Job, settings: Settings, *, pod: bool) -> dict[str, str | Mapping[str, Any]]:
    """Where workers check in and launchers listen. A worker also sends its pod's uid and address."""
    if not settings.checkin_urls:
        return {}
    identity = {"MPIBOOT_POD_UID": field_ref("metadata.uid"), "MPIBOOT_POD_IP": field_ref("status.podIP")}
    return {
        "MPIBOOT_CHECKIN": " ".join(settings.checkin_urls),
        "MPIBOOT_TOKEN": secret_ref(job, "token"),
        **(identity if pod else {}),
    }


def of_runtime(job: Job) -> dict[str, str]:
    """The variables that the job's runtime reads."""
    runtime = job.runtime
    found = {
        **dict.fromkeys(runtime.full_names, "true"),
        **dict.fromkeys(runtime.hostfile_variables, HOSTFILE),
        **dict.fromkeys(runtime.ssh_options, SSH_ARGS),
        **dict.fromkeys((*runtime.default_slots, *runtime.ranks_a_host), str(job.slots_per_worker)),
        **dict((*runtime.always, *runtime.unbound)),
    }
    # With more hosts a runtime starts its daemons as a tree, by ssh from worker to worker, and workers have no key.
    if runtime.flat_up_to is not None and job.hosts > runtime.flat_up_to:
        found |= dict(runtime.flat)
    return found
