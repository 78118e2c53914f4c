"""The files of a trial: a job's keys as launcher and worker have them, ssh's configuration, the hostfiles. Pure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mpiboot.images.check import allreduce, runtime
from mpiboot.images.check.runtime import OUR_FILES
from mpiboot.images.check.sandbox import File
from mpiboot.job.names import known_hosts
from mpiboot.job.plan.keys import PUBLIC, ROOT_ONLY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpiboot.job.plan.ssh_material import SshMaterial

SSH_CONFIG = f"{OUR_FILES}/ssh_config"
ALLREDUCE = f"{OUR_FILES}/allreduce.py"


Role = Literal["launcher", "worker"]


def keys(role: Role, material: SshMaterial, *, as_root: bool) -> dict[str, File]:
    """What a job mounts: on the launcher `id_rsa` logs in, on a worker it is the host key."""
    if role == "launcher":
        return {
            "id_rsa": _private(material.client_private, as_root=as_root),
            "id_rsa.pub": File(material.client_public),
            "known_hosts": File(known_hosts(material.host_public)),
        }
    return {
        "id_rsa": _private(material.host_private, as_root=as_root),
        "id_rsa.pub": File(material.host_public),
        "authorized_keys": File(material.client_public),
    }


def files(key_directory: str, hosts: Sequence[str], slots: int) -> dict[str, File]:
    """The files that the trial adds. ssh accepts only the job's host key; the image gives all other settings."""
    config = (
        "Host *\n"
        f"    IdentityFile {key_directory}/id_rsa\n"
        "    IdentitiesOnly yes\n"
        f"    UserKnownHostsFile {key_directory}/known_hosts\n"
        "    GlobalKnownHostsFile /dev/null\n"
        "    StrictHostKeyChecking yes\n"
        "    BatchMode yes\n"
        "    ConnectTimeout 10\n"
        "    LogLevel ERROR\n"
        "Include /etc/ssh/ssh_config\n"
    )
    return {
        "ssh_config": File(config),
        "allreduce.py": File(Path(allreduce.__file__).read_text()),
        **{name: File(text) for name, text in runtime.hostfiles(hosts, slots).items()},
    }


def environment(role: Role, key_directory: str) -> dict[str, str]:
    """The variables of a job's containers, and on the launcher those that give mpirun the trial's ssh settings."""
    variables = {"K_MPI_JOB_ROLE": role, "MPIBOOT_SSH_DIR": key_directory}
    return variables | (runtime.environment(SSH_CONFIG) if role == "launcher" else {})


def _private(text: str, *, as_root: bool) -> File:
    # ssh and sshd refuse a key that they own and others can read; a key of another owner must be readable for them.
    return File(text, ROOT_ONLY if as_root else PUBLIC)
