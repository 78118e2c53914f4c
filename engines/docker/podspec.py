"""A pod's manifest as one container: a value that says all that `create.py` asks the engine for. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiboot.engines import podenv
from mpiboot.engines.docker.ready import Ready, ready
from mpiboot.engines.docker.resources import Limits, limits
from mpiboot.engines.docker.security import Security, security
from mpiboot.engines.podvolumes import Volume, volumes
from mpiboot.job.errors import UserError
from mpiboot.job.pods import main_container

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mpiboot.engines.objects import Objects
    from mpiboot.job.model import Role

POD_HONOURED = frozenset({
    "containers", "volumes", "hostname", "subdomain", "restartPolicy", "securityContext", "hostAliases",
    "terminationGracePeriodSeconds", "activeDeadlineSeconds", "setHostnameAsFQDN",
    "dnsConfig",
    # Nothing to do for them on one machine, or the engine's own way serves:
    "automountServiceAccountToken", "enableServiceLinks", "dnsPolicy", "schedulingGates", "preemptionPolicy",
})  # fmt: skip
CONTAINER_HONOURED = frozenset({
    "name", "image", "imagePullPolicy", "command", "args", "workingDir", "env", "envFrom", "resources", "volumeMounts",
    "securityContext", "stdin", "tty", "startupProbe", "readinessProbe", "ports",
    "terminationMessagePath", "terminationMessagePolicy",
})  # fmt: skip


@dataclass(frozen=True)
class Mount:
    """A volume's place in a container."""

    volume: Volume
    target: str
    read_only: bool


@dataclass(frozen=True)
class ContainerSpec:
    """One container. None: what the image says."""

    name: str
    role: Role
    index: int
    image: str
    pull: str  # Kubernetes' words: IfNotPresent, Always, Never
    entrypoint: Sequence[str] | None
    command: Sequence[str] | None
    env: Mapping[str, str]
    working_dir: str | None
    hostname: str
    aliases: tuple[str, ...]  # names that the other containers find it by
    extra_hosts: Mapping[str, str]
    dns: Mapping[str, Sequence[str]]  # `nameservers`, `searches`, `options`
    security: Security
    limits: Limits
    mounts: tuple[Mount, ...]
    grace: float  # seconds between SIGTERM and SIGKILL
    ready: Ready
    restart_policy: str = "Never"
    init: bool = False  # the engine's own process 1, which passes SIGTERM on


def container_spec(
    pod: Mapping[str, Any], role: Role, index: int, objects: Objects, *, main: str = "",
    machine_cpus: int | None = None, allow_host_path: bool = False,
) -> tuple[ContainerSpec, list[str]]:  # fmt: skip
    """The container for a pod, and what of the pod cannot be honoured."""
    unmet: list[str] = []
    spec, name = pod["spec"], str(pod["metadata"]["name"])
    container = _main(pod, main, unmet)
    env = podenv.environment(pod, container, objects, unmet)
    unmet += [key for key, value in spec.items() if key not in POD_HONOURED and value]
    unmet += [key for key, value in container.items() if key not in CONTAINER_HONOURED and value]
    hostname = str(spec.get("hostname") or name)
    return ContainerSpec(
        name=name,
        role=role,
        index=index,
        image=str(container.get("image") or ""),
        pull=str(container.get("imagePullPolicy") or "IfNotPresent"),
        entrypoint=podenv.words(container, "command", env),
        command=podenv.words(container, "args", env),
        env=env,
        working_dir=container.get("workingDir"),
        hostname=hostname,
        aliases=tuple(_aliases(hostname, spec.get("subdomain"), pod["metadata"].get("namespace", "default"))),
        extra_hosts={host: alias["ip"] for alias in spec.get("hostAliases") or () for host in alias["hostnames"]},
        dns=_dns(spec.get("dnsConfig") or {}),
        security=security(pod, container, unmet),
        limits=limits(container, machine_cpus, unmet),
        mounts=tuple(_mounts(pod, container, objects, unmet, allow_host_path=allow_host_path)),
        grace=float(spec.get("terminationGracePeriodSeconds", 10)),
        ready=ready(container, unmet),
        restart_policy=str(spec.get("restartPolicy") or "Never"),
    ), unmet  # fmt: skip


def _main(pod: Mapping[str, Any], main: str, unmet: list[str]) -> Mapping[str, Any]:
    chosen = main_container(pod, main)
    unmet += [f"container {one.get('name')}" for one in pod["spec"]["containers"] if one is not chosen]
    return chosen


def _aliases(hostname: str, subdomain: str | None, namespace: str) -> Iterator[str]:
    yield hostname
    if subdomain:
        yield f"{hostname}.{subdomain}"
        yield f"{hostname}.{subdomain}.{namespace}"
        yield f"{hostname}.{subdomain}.{namespace}.svc"
        yield f"{hostname}.{subdomain}.{namespace}.svc.cluster.local"


def _dns(given: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
    options = given.get("options") or ()
    return {
        "nameservers": given.get("nameservers") or (),
        "searches": given.get("searches") or (),
        "options": [f"{one['name']}:{one['value']}" if one.get("value") else one["name"] for one in options],
    }


def _mounts(
    pod: Mapping[str, Any], container: Mapping[str, Any], objects: Objects, unmet: list[str], *, allow_host_path: bool
) -> Iterator[Mount]:
    known = volumes(pod, objects, unmet)
    for mount in container.get("volumeMounts") or ():
        volume = known.get(mount["name"])
        if volume is None:
            raise UserError(f"{pod['metadata']['name']}: volumeMounts names a volume {mount['name']!r}; there is none")
        if mount.get("subPath") or mount.get("subPathExpr"):
            unmet.append(f"volumeMounts[{mount['name']}].subPath (not mounted)")
            continue
        if volume.kind == "host" and not allow_host_path:
            raise UserError(
                f"{pod['metadata']['name']}: the volume {volume.name!r} is this machine's {volume.host_path}; "
                "containers see the machine's files only with --allow-host-path"
            )
        yield Mount(volume, str(mount["mountPath"]), bool(mount.get("readOnly")))
