"""A pod's manifest as one container: a value with all that `create.py` sends to the engine. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiboot.engines.docker.ready_probe import Ready, ready
from mpiboot.engines.docker.resources import Limits, limits
from mpiboot.engines.docker.security import Allowed, Security, security
from mpiboot.engines.pods import pod_environment
from mpiboot.engines.pods.pod_volumes import Volume, volumes
from mpiboot.job.errors import UserError
from mpiboot.job.template import main_container

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mpiboot.engines.pods.objects import Objects
    from mpiboot.job.model import Role

POD_FIELDS = frozenset({
    "containers", "volumes", "hostname", "subdomain", "restartPolicy", "securityContext", "hostAliases",
    "terminationGracePeriodSeconds", "activeDeadlineSeconds", "setHostnameAsFQDN",
    "dnsConfig",
    # Nothing to do for them on one machine, or the engine's own way serves:
    "automountServiceAccountToken", "enableServiceLinks", "dnsPolicy", "schedulingGates", "preemptionPolicy",
})  # fmt: skip
CONTAINER_FIELDS = frozenset({
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
    """One container. None: the image's own value."""

    name: str
    role: Role
    index: int
    image: str
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
    stdin: bool = False  # it reads what this program's own stdin gets
    init: bool = False  # the engine's own process 1, which passes SIGTERM on


def container_spec(
    pod: Mapping[str, Any], role: Role, index: int, objects: Objects, allowed: Allowed, *, main: str = "",
    machine_cpus: int | None = None,
) -> tuple[ContainerSpec, list[str]]:  # fmt: skip
    """The container for a pod, and the fields of the pod that have no effect."""
    ignored: list[str] = []
    spec, name = pod["spec"], str(pod["metadata"]["name"])
    container = _main(pod, main, ignored)
    env = pod_environment.environment(pod, container, objects, ignored)
    ignored += [key for key, value in spec.items() if key not in POD_FIELDS and value]
    ignored += [key for key, value in container.items() if key not in CONTAINER_FIELDS and value]
    hostname = str(spec.get("hostname") or name)
    return ContainerSpec(
        name=name,
        role=role,
        index=index,
        image=str(container.get("image") or ""),
        entrypoint=pod_environment.words(container, "command", env),
        command=pod_environment.words(container, "args", env),
        env=env,
        working_dir=container.get("workingDir"),
        hostname=hostname,
        aliases=tuple(_aliases(hostname, spec.get("subdomain"), pod["metadata"].get("namespace", "default"))),
        extra_hosts={host: alias["ip"] for alias in spec.get("hostAliases") or () for host in alias["hostnames"]},
        dns=_dns(spec.get("dnsConfig") or {}),
        security=security(pod, container, allowed, ignored),
        limits=limits(container, machine_cpus, ignored),
        mounts=tuple(_mounts(pod, container, objects, ignored, allowed)),
        grace=float(spec.get("terminationGracePeriodSeconds", 10)),
        ready=ready(container, ignored),
    ), ignored  # fmt: skip


def _main(pod: Mapping[str, Any], main: str, ignored: list[str]) -> Mapping[str, Any]:
    chosen = main_container(pod, main)
    ignored += [f"container {one.get('name')}" for one in pod["spec"]["containers"] if one is not chosen]
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
    pod: Mapping[str, Any], container: Mapping[str, Any], objects: Objects, ignored: list[str], allowed: Allowed
) -> Iterator[Mount]:
    known = volumes(pod, objects, ignored)
    for mount in container.get("volumeMounts") or ():
        volume = known.get(mount["name"])
        if volume is None:
            raise UserError(f"{pod['metadata']['name']}: volumeMounts names a volume {mount['name']!r}; there is none")
        if mount.get("subPath") or mount.get("subPathExpr"):
            ignored.append(f"volumeMounts[{mount['name']}].subPath (not mounted)")
            continue
        if volume.kind == "host" and not allowed.host_path:
            raise UserError(
                f"{pod['metadata']['name']}: the volume {volume.name!r} is this machine's {volume.host_path}; "
                "containers see the machine's files only with --allow-host-path"
            )
        yield Mount(volume, str(mount["mountPath"]), bool(mount.get("readOnly")))
