"""How a job's pods are started, decided once: which images carry mpiboot, what waits for the workers, which keys count.

Everything that plans, warns or runs asks this value, so that all of it follows from the same answers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiboot.job import elastic, gang, job_annotations, mpi, names
from mpiboot.job.template import has_command, main_container, main_index, mounted, spec_of, starts_mpiboot, words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpiboot.job.gang import Gang
    from mpiboot.job.job_annotations import LaunchMode
    from mpiboot.job.model import Job, Replica
    from mpiboot.job.settings import Settings

# The operators of these versions started processes by `kubectl exec`, so their images may hold no SSH.
WITHOUT_SSH = frozenset({"v1alpha1", "v1alpha2"})

# Injectors read annotations of pods and need the pod's API token. This annotation only keeps one of them away.
HARMLESS = frozenset({job_annotations.ISTIO})
# Any volume makes the pod wait for all of them, and these say that the pod wants one: the API token.
WANTS_VOLUMES = ("volumes", "serviceAccountName", "serviceAccount", "automountServiceAccountToken")
CONTAINERS = ("initContainers", "containers")

PROGRAMS = frozenset({*mpi.starters(), "horovodrun", "sh", "bash"})


@dataclass(frozen=True)
class RoleArrangement:
    """How the pods of one role are started. `container` is the main one, at `position` among the template's."""

    template: Mapping[str, Any]
    container: Mapping[str, Any]
    position: int
    own_image: bool  # the image is one of ours, so its entrypoint is mpiboot's
    carries_mpiboot: bool  # ... or the job says that its image holds mpiboot
    delivered: bool  # an init container brings sshd and ssh, which need nothing of the image
    copies_key: bool  # what runs in the container copies the SSH key to a directory of its own, and uses the copy

    @property
    def image(self) -> str:
        return str(self.container.get("image"))


@dataclass(frozen=True)
class Arrangement:
    """The decisions about one job under one installation's settings.

    `launch_mode` says what holds mpirun back until the workers are ready: `mpiboot launch` in the launcher itself
    (in-place), a shell script before its command (guard), whatever created the launcher (gate: its pods carry a
    scheduling gate), or nothing (off).
    """

    job: Job
    settings: Settings
    launch_mode: LaunchMode
    launcher: RoleArrangement
    worker: RoleArrangement | None
    verify_hosts: bool  # the workers' sshd shows the job's own host key, and the launcher checks it
    one_pair: bool  # workers get the client's key too, because ranks log in to each other
    mountless: bool  # workers mount nothing: a kubelet starts such a pod 0.3 s sooner (docs/decisions/0013)
    gang: Gang | None  # how a gang scheduler starts the pods all together; None: each pod starts by itself

    @property
    def waits_by_itself(self) -> bool:
        """Whether the launcher runs while it waits, and so has to hear of its workers."""
        return self.launch_mode in {"in-place", "guard"}


def arrange(job: Job, settings: Settings) -> Arrangement:
    container = main_container(job.launcher.template, job.main_container)
    # If a job says so of its launcher's image, it is true of the same image in workers.
    said = job_annotations.launch(job.annotations) == "in-place" or starts_mpiboot(container)
    mode = launch_mode(job, container, carries_mpiboot=said or settings.is_own(str(container.get("image"))))
    delivery = wants_delivery(job, settings)
    in_place = mode == "in-place"
    launcher = role(job, job.launcher, settings, carries_mpiboot=in_place, runs_mpiboot=in_place, delivery=delivery)
    worker = None
    if job.worker:
        workers = main_container(job.worker.template, job.main_container)
        image = workers.get("image")
        ours = settings.is_own(str(image)) or (said and image == container.get("image"))
        runs = (ours and not has_command(workers)) or starts_mpiboot(workers)
        worker = role(job, job.worker, settings, carries_mpiboot=ours, runs_mpiboot=runs, delivery=delivery)
    one_pair = job_annotations.worker_ssh(job.annotations) == "on"
    verify = verifies_hosts(job, worker)
    mountless = (
        not settings.mount_keys and not one_pair and worker is not None and needs_no_mount(worker, verify=verify)
    )
    together = gang.of_job(job, settings.gang_scheduling, mode) if settings.gang_scheduling else None
    return Arrangement(job, settings, mode, launcher, worker, verify, one_pair, mountless, together)


def launch_mode(job: Job, container: Mapping[str, Any], *, carries_mpiboot: bool) -> LaunchMode:
    wanted = job_annotations.launch(job.annotations)
    if wanted and wanted != "guard":
        return wanted
    if carries_mpiboot and not wanted:
        return "in-place"
    if not job.workers:
        return "off"
    return "guard" if takes_guard(job, container, wanted=wanted == "guard") else "gate"


def takes_guard(job: Job, container: Mapping[str, Any], *, wanted: bool) -> bool:
    """Whether a script before the launcher's command can wait for the workers (docs/decisions/0029).

    An elastic launcher reads its list of hosts from a file that must be complete before its pod starts. A user's own
    mount may hide the script. Without a command an unknown entrypoint gets the arguments: it runs them as a command if
    they begin with one.
    """
    if elastic.of_job(job) or mounted(container, names.CONFIG_DIR) or not has_command(container):
        return False
    return bool(container.get("command")) or wanted or begins_with_program(words(container))


def begins_with_program(arguments: Sequence[str]) -> bool:
    """Whether arguments for an unknown entrypoint begin with a program: `mpirun -n 2 ./a`, and not `-n 2 ./a`."""
    return len(arguments) > 1 and arguments[0].rpartition("/")[2] in PROGRAMS


def role(
    job: Job, replica: Replica, settings: Settings, *, carries_mpiboot: bool, runs_mpiboot: bool, delivery: bool
) -> RoleArrangement:
    container = main_container(replica.template, job.main_container)
    delivered = delivery and not carries_mpiboot
    return RoleArrangement(
        replica.template,
        container,
        main_index(replica.template, job.main_container),
        own_image=settings.is_own(str(container.get("image"))),
        carries_mpiboot=carries_mpiboot,
        delivered=delivered,
        copies_key=runs_mpiboot or delivered,
    )


def wants_delivery(job: Job, settings: Settings) -> bool:
    """Whether pods get an sshd and an ssh, where their images do not carry mpiboot."""
    wanted = job_annotations.ssh(job.annotations)
    if not settings.delivery_image or wanted == "image":
        return False
    return wanted == "delivered" or (job.dialect in WITHOUT_SSH and not starts_sshd(job))


def starts_sshd(job: Job) -> bool:
    """Whether the user's workers start a server by their own command: the launcher's image then suits it."""
    if job.worker is None:
        return False
    container = main_container(job.worker.template, job.main_container)
    return any(re.search(r"\bsshd\b", word) for word in words(container))


def verifies_hosts(job: Job, worker: RoleArrangement | None) -> bool:
    """Whether the workers' sshd shows the job's own host key, so that the launcher can tell impostors.

    An image that starts its own sshd with keys baked in does not.
    """
    if wanted := job_annotations.host_keys(job.annotations):
        return wanted == "verify"
    return worker is None or worker.carries_mpiboot or worker.delivered or not has_command(worker.container)


def needs_no_mount(worker: RoleArrangement, *, verify: bool) -> bool:
    """Whether `mpiboot worker` or the plan's own command alone runs in a worker's pod, and no volume is asked for."""
    spec, metadata = spec_of(worker.template), worker.template.get("metadata") or {}
    return (
        # Not an image that is only said to carry mpiboot: it may start an sshd of its own, which looks for files.
        (worker.own_image or (verify and not worker.carries_mpiboot and not worker.delivered))
        and not has_command(worker.container)
        and not any(name in spec for name in WANTS_VOLUMES)
        and not set(metadata.get("annotations") or {}) - HARMLESS
        and sum(len(spec.get(name) or ()) for name in CONTAINERS) == 1
    )
