"""What is known about a job's images and commands, and what follows from it."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from mpiboot.job import delivery, pods, wishes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.job.model import Job, Role
    from mpiboot.job.settings import Settings
    from mpiboot.job.wishes import HostKeys, Waits


OUR_USERS_SSH = "/home/mpiuser/.ssh"


def has_command(container: Mapping[str, Any]) -> bool:
    return bool(container.get("command") or container.get("args"))


def starts_mpiboot(container: Mapping[str, Any]) -> bool:
    """Whether the user calls mpiboot himself."""
    command = container.get("command") or container.get("args") or ("",)
    return PurePosixPath(str(command[0])).name == "mpiboot"


def launcher_waits(job: Job, settings: Settings) -> Waits:
    """Who keeps mpirun back until the workers are ready."""
    container = pods.main_container(job.launcher.template, job.main_container)
    if wish := wishes.launch(job.annotations):
        return wish
    if starts_mpiboot(container) or settings.is_own(str(container.get("image"))):
        return "in-place"
    # A gang scheduler waits for all pods of a group, also for a gated one: that gate would never open.
    return "off" if settings.gang_scheduler or not job.workers else "gate"


def worker_is_ours(job: Job, settings: Settings) -> bool:
    """Whether the workers' image carries mpiboot: if a job says so of its launcher's, the same image does too."""
    if job.worker is None:
        return False
    image = str(pods.main_container(job.worker.template, job.main_container).get("image"))
    launcher = pods.main_container(job.launcher.template, job.main_container)
    said = wishes.launch(job.annotations) == "in-place" or starts_mpiboot(launcher)
    return settings.is_own(image) or (said and image == launcher.get("image"))


def ssh_is_delivered(job: Job, settings: Settings, role: Role) -> bool:
    """Whether a role's pods get an sshd and an ssh brought: never to an image that carries mpiboot."""
    if not delivery.wanted(job, settings):
        return False
    ours = launcher_waits(job, settings) == "in-place" if role == "launcher" else worker_is_ours(job, settings)
    return not ours


def host_keys(job: Job, settings: Settings) -> HostKeys:
    """Whether the workers' sshd shows the job's own host key, so that the launcher can tell impostors.

    An image that starts its own sshd with keys baked in does not.
    """
    if wish := wishes.host_keys(job.annotations):
        return wish
    if job.worker is None or worker_is_ours(job, settings):
        return "verify"
    if ssh_is_delivered(job, settings, "worker"):
        return "verify"
    return "off" if has_command(pods.main_container(job.worker.template, job.main_container)) else "verify"
