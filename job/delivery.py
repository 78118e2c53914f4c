"""Images made for the time before SSH: the delivery image brings an sshd and an ssh that need nothing of the image.

An init container copies them into a volume. The workers' `serve` and the launcher's `ssh` there know the job's keys and
one port, so nothing of the image is asked: no libraries, no accounts, no configuration. See images/kit/delivery.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mpiboot.job import pods, wishes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.job.model import Job
    from mpiboot.job.settings import Settings

HERE = "/opt/mpiboot-ssh"  # compiled into the delivered programs
PORT = 2222
DIALECTS = frozenset({"v1alpha1", "v1alpha2"})  # their operators started processes by `kubectl exec`

# Each runtime's name for the program that it calls instead of ssh.
AGENTS = {
    "OpenMPI": ("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent"),
    "Intel": ("I_MPI_HYDRA_BOOTSTRAP_EXEC",),
    "MPICH": ("HYDRA_LAUNCHER_EXEC",),
}


def wanted(job: Job, settings: Settings) -> bool:
    """Whether the pods of a job get SSH brought, where their images do not carry mpiboot."""
    wish = wishes.ssh(job.annotations)
    if not settings.delivery_image or wish == "image":
        return False
    return wish == "delivered" or (job.dialect in DIALECTS and not starts_sshd(job))


def starts_sshd(job: Job) -> bool:
    """Whether the user's workers bring a server by their own command: the launcher's image then suits it."""
    if job.worker is None:
        return False
    container = pods.main_container(job.worker.template, job.main_container)
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    return any(re.search(r"\bsshd\b", str(word)) for word in words)


def volume(settings: Settings) -> pods.Volume:
    """The delivered programs, and who brings them."""
    return pods.Volume("mpiboot-ssh", {"emptyDir": {}}, HERE, filler={
        "name": "mpiboot-ssh",
        "image": settings.delivery_image,
        "imagePullPolicy": "IfNotPresent",
        # Requests as limits: without them a quota would refuse the pod, and with others it would lose its class.
        "resources": {kind: {"cpu": "100m", "memory": "64Mi"} for kind in ("requests", "limits")},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    })  # fmt: skip


def served(job: Job, container: Mapping[str, Any]) -> dict[str, Any]:
    """A worker's command: the server, and beside it the user's own command. Arguments alone are an entrypoint's, which
    nobody here knows: they stay.
    """
    words = pods.with_text(container).get("command") or ()
    if container.get("args") and not words:
        return {}
    return {"command": [f"{HERE}/bin/serve", job.ssh_auth_mount_path, *words]}


def agents(job: Job) -> dict[str, str]:
    """A launcher's variables: mpirun calls the delivered ssh, whatever the image has."""
    return dict.fromkeys(AGENTS[job.implementation], f"{HERE}/bin/ssh")
