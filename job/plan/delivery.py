"""For images without SSH: an init container copies in a self-contained sshd and ssh from the delivery image.

The workers run `serve`, and the launcher's mpirun calls `ssh`. Both use the job's keys and one port, and need nothing
of the image: no libraries, no accounts, no configuration. See images/kit/delivery.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpiboot.job.plan import pods

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.job.model import Job
    from mpiboot.job.settings import Settings

HERE = "/opt/mpiboot-ssh"  # compiled into the delivered programs
SSH = f"{HERE}/bin/ssh"  # what mpirun calls, whatever the image has
SHELL = f"{HERE}/bin/busybox"
PORT = 2222


def volume(settings: Settings) -> pods.Volume:
    """The delivered programs, and the init container that copies them."""
    return pods.Volume("mpiboot-ssh", {"emptyDir": {}}, HERE, filler={
        "name": "mpiboot-ssh",
        "image": settings.delivery_image,
        "imagePullPolicy": "IfNotPresent",
        # Requests as limits: without them a quota would refuse the pod, and with others it would lose its class.
        "resources": {kind: {"cpu": "100m", "memory": "64Mi"} for kind in ("requests", "limits")},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    })  # fmt: skip


def served(job: Job, container: Mapping[str, Any]) -> dict[str, Any]:
    """A worker's command: the server, and beside it the user's own command. A container with arguments alone keeps
    them: they belong to an entrypoint, which the plan does not know.
    """
    words = pods.with_text(container).get("command") or ()
    if container.get("args") and not words:
        return {}
    return {"command": [f"{HERE}/bin/serve", job.ssh_auth_mount_path, *words]}
