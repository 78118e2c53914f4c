"""The annotations of mpiboot: their names, and the values that jobs may give them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeVar

from mpiboot.job.problems import Problem, path_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mpiboot.job.read.manifest import Manifest

PREFIX = "mpiboot.dev/"
ISTIO = "sidecar.istio.io/inject"  # "false" keeps a mesh's sidecar out of a pod
LAUNCH = f"{PREFIX}launch"
HOST_KEYS = f"{PREFIX}host-keys"
WORKER_SSH = f"{PREFIX}worker-ssh"
SSH = f"{PREFIX}ssh"
GANG_SCHEDULING = f"{PREFIX}gang-scheduling"
RUN = f"{PREFIX}run"  # `mpiboot run --engine kubernetes` marks its job with it; it changes nothing
ADDRESSES = f"{PREFIX}addresses"  # of launcher pods: the operator writes the workers' addresses there
DISCOVERY = f"{PREFIX}discovery"  # of launcher pods: when it changes, the kubelet reads the ConfigMap again
GATE = f"{PREFIX}workers"  # a scheduling gate, not an annotation: it opens when all workers are ready

LaunchMode = Literal["in-place", "guard", "gate", "off"]
HostKeys = Literal["verify", "off"]
OnOff = Literal["on", "off"]
Ssh = Literal["image", "delivered"]
Choice = TypeVar("Choice", bound=str)

LAUNCH_CHOICES: tuple[LaunchMode, ...] = ("in-place", "guard", "gate", "off")
HOST_KEYS_CHOICES: tuple[HostKeys, ...] = ("verify", "off")
WORKER_SSH_CHOICES: tuple[OnOff, ...] = ("on", "off")
SSH_CHOICES: tuple[Ssh, ...] = ("image", "delivered")
GANG_SCHEDULING_CHOICES: tuple[OnOff, ...] = ("on", "off")
CHOICES: Mapping[str, tuple[str, ...]] = {
    LAUNCH: LAUNCH_CHOICES,
    HOST_KEYS: HOST_KEYS_CHOICES,
    WORKER_SSH: WORKER_SSH_CHOICES,
    SSH: SSH_CHOICES,
    GANG_SCHEDULING: GANG_SCHEDULING_CHOICES,
}


def launch(annotations: Mapping[str, str]) -> LaunchMode | None:
    """What waits for the workers; None: the image decides."""
    return chosen(annotations.get(LAUNCH), LAUNCH_CHOICES)


def host_keys(annotations: Mapping[str, str]) -> HostKeys | None:
    """Whether the launcher checks the workers' host keys; None: it does if they are the job's own."""
    return chosen(annotations.get(HOST_KEYS), HOST_KEYS_CHOICES)


def worker_ssh(annotations: Mapping[str, str]) -> OnOff | None:
    """Whether workers log in to each other, and so need the client's key."""
    return chosen(annotations.get(WORKER_SSH), WORKER_SSH_CHOICES)


def ssh(annotations: Mapping[str, str]) -> Ssh | None:
    """Which sshd and ssh a job uses: the image's own, or delivered ones; None: the API version decides."""
    return chosen(annotations.get(SSH), SSH_CHOICES)


def gang_scheduling(annotations: Mapping[str, str]) -> OnOff | None:
    """Whether the job is scheduled as a gang, where the installation has a gang scheduler; None: it is."""
    return chosen(annotations.get(GANG_SCHEDULING), GANG_SCHEDULING_CHOICES)


def chosen(value: str | None, choices: tuple[Choice, ...]) -> Choice | None:
    return next((choice for choice in choices if choice == value), None)


def problems(manifest: Manifest, annotations: Mapping[str, str]) -> Iterator[Problem]:
    """Warnings about annotations with our prefix that have no effect. The job runs without them."""
    for key, value in annotations.items():
        path = ("metadata", "annotations", key)
        if key == RUN:
            continue
        if key in CHOICES and value not in CHOICES[key]:
            message = f"must be one of {', '.join(CHOICES[key])}, is {value!r}: ignored"
            yield Problem(path_text(path), message, manifest.line(path), "warning")
        elif key.startswith(PREFIX) and key not in CHOICES:
            known = ", ".join(name.removeprefix(PREFIX) for name in CHOICES)
            message = f"unknown annotation, ignored; {PREFIX} has: {known}"
            yield Problem(path_text(path), message, manifest.line(path), "warning")
