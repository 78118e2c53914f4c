"""Workers that mount nothing: a kubelet starts a pod without volumes 0.3 s sooner (docs/decisions/0013)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.job import keys, pods, trust

if TYPE_CHECKING:
    from mpiboot.job.model import Job, Replica
    from mpiboot.job.settings import Settings

# Annotations are for others to read: injectors, which need the pod's API token. This one only keeps one of them away.
HARMLESS = frozenset({pods.ISTIO})
# Any volume makes the pod wait for all of them, and these say that the pod wants one: the API token.
WANTS_VOLUMES = ("volumes", "serviceAccountName", "serviceAccount", "automountServiceAccountToken")
OTHERS = ("initContainers", "containers")


def wanted(job: Job, worker: Replica, settings: Settings) -> bool:
    """Whether a worker can do without: `mpiboot worker` alone runs in its pod, and the template asks for no volume."""
    spec, metadata = pods.spec_of(worker.template), worker.template.get("metadata") or {}
    container = pods.main_container(worker.template, job.main_container)
    # Not one that is only said to carry mpiboot: it may start an sshd of its own, which looks for files.
    ours = settings.is_own(str(container.get("image")))
    return (
        ours
        and not settings.mount_keys
        and not trust.has_command(container)
        and not keys.one_pair(job)  # ranks look for that key in a file
        and not any(name in spec for name in WANTS_VOLUMES)
        and not set(metadata.get("annotations") or {}) - HARMLESS
        and sum(len(spec.get(name) or ()) for name in OTHERS) == 1
    )
