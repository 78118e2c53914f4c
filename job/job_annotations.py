"""The annotations of mpiboot: their names, and the values that jobs may give them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeVar

from mpiboot.job.problems import Problem, path_text
from mpiboot.job.suggestions import nearest
from mpiboot.job.values import exit_codes, kind, natural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mpiboot.job.read.manifest import Manifest

PREFIX = "mpiboot.dev/"
ISTIO = "sidecar.istio.io/inject"  # "false" keeps a mesh's sidecar out of a pod
LAUNCH = f"{PREFIX}launch"
HOST_KEYS = f"{PREFIX}host-keys"
WORKER_SSH = f"{PREFIX}worker-ssh"
SSH = f"{PREFIX}ssh"
GANG_SCHEDULING = f"{PREFIX}gang-scheduling"
RESTARTS = f"{PREFIX}restarts"
FINAL_CODES = f"{PREFIX}final-codes"
LOST_WORKER_TIMEOUT = f"{PREFIX}lost-worker-timeout"
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


# Annotations with other values: what the value must be, and whether a text is one.
VALUES: Mapping[str, tuple[str, Callable[[str], bool]]] = {
    RESTARTS: ("a whole number", lambda text: natural(text) is not None),
    FINAL_CODES: ("exit codes from 1 to 255, like 2,64-78", lambda text: exit_codes(text) is not None),
    LOST_WORKER_TIMEOUT: ("a whole number of seconds", lambda text: natural(text) is not None),
}
KNOWN = (*CHOICES, *VALUES)
# What `mpiboot launch` reads, by the annotation that sets it.
VARIABLES = {
    RESTARTS: "MPIBOOT_RESTARTS",
    FINAL_CODES: "MPIBOOT_FINAL_CODES",
    LOST_WORKER_TIMEOUT: "MPIBOOT_LOST_WORKER_TIMEOUT",
}


def variables(annotations: Mapping[str, str]) -> dict[str, str]:
    """The launcher's variables for a job with these annotations. Wrong values have no effect."""
    return {
        variable: annotations[name]
        for name, variable in VARIABLES.items()
        if name in annotations and not fault(name, annotations[name])
    }


def fault(name: str, value: str) -> str:
    """What is wrong with the value of an annotation that is known; empty if nothing is."""
    if name in CHOICES:
        return "" if value in CHOICES[name] else f"must be one of {', '.join(CHOICES[name])}, is {value!r}"
    wanted, fits = VALUES[name]
    return "" if fits(value) else f"must be {wanted}, is {kind(value)}"


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
        if key in KNOWN:
            if wrong := fault(key, value):
                yield Problem(path_text(path), f"{wrong}: ignored", manifest.line(path), "warning")
        elif key.startswith(PREFIX):
            hint = nearest(key.removeprefix(PREFIX), (name.removeprefix(PREFIX) for name in KNOWN))
            message = f"unknown annotation, ignored{hint}"
            yield Problem(path_text(path), message, manifest.line(path), "warning")
