"""A container's description as arguments of the engine's API. Pure, except for docker-py's own helpers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docker.types import DeviceRequest, Mount

from mpiboot.engines.docker import volumes
from mpiboot.engines.docker.labels import FILLER
from mpiboot.engines.inbox import process_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from docker import APIClient

    from mpiboot.engines.docker.labels import RunLabels
    from mpiboot.engines.docker.podspec import ContainerSpec


def arguments(api: APIClient, spec: ContainerSpec, run: RunLabels) -> dict[str, Any]:
    """Keyword arguments of `create_container`."""
    return {
        "image": spec.image,
        "name": spec.name,
        "hostname": spec.hostname,
        "entrypoint": list(spec.entrypoint) if spec.entrypoint else None,
        "command": list(spec.command) if spec.command else None,
        "environment": dict(spec.env),
        "working_dir": spec.working_dir,
        "stdin_open": spec.stdin,  # and its first reader gets end of file when the connection ends
        "user": spec.security.user,
        "labels": run.of(spec.role, spec.index),
        "host_config": _host_config(api, spec, run),
        "networking_config": {
            "EndpointsConfig": {
                run.network: api.create_endpoint_config(aliases=[*spec.aliases, process_name(spec.role, spec.index)]),
            }
        },
    }


def filler_arguments(api: APIClient, image: str, run: RunLabels, keys: list[str]) -> dict[str, Any]:
    """The same for the container through which volumes are filled: each is mounted at its key in the root."""
    return {
        "image": image,
        "entrypoint": ["/never/started"],
        "labels": run.of(FILLER, 0),
        "host_config": api.create_host_config(
            network_mode="none", mounts=[_volume(run, key, f"/{key}", read_only=False) for key in keys]
        ),
    }


def _host_config(api: APIClient, spec: ContainerSpec, run: RunLabels) -> Mapping[str, Any]:
    security, limits = spec.security, spec.limits
    return api.create_host_config(
        network_mode=run.network,
        mounts=_mounts(spec, run),
        tmpfs={mount.target: _tmpfs(mount.volume.size) for mount in spec.mounts if mount.volume.kind == "memory"},
        extra_hosts=dict(spec.extra_hosts),
        dns=list(spec.dns["nameservers"]),
        dns_search=list(spec.dns["searches"]),
        dns_opt=list(spec.dns["options"]),
        cap_add=list(security.add),
        cap_drop=list(security.drop),
        group_add=[str(group) for group in security.groups],
        read_only=security.read_only,
        init=spec.init or None,
        security_opt=list(security.options),
        sysctls=dict(security.sysctls),
        nano_cpus=limits.nano_cpus,
        mem_limit=limits.memory,
        # Kubernetes gives no swap either; Docker's default would be as much again.
        memswap_limit=limits.memory,
        device_requests=[DeviceRequest(count=limits.gpus, capabilities=[["gpu"]])] if limits.gpus else None,
    )


def _mounts(spec: ContainerSpec, run: RunLabels) -> list[Mount]:
    mounts = []
    for mount in spec.mounts:
        volume = mount.volume
        if volume.kind == "host":
            mounts.append(Mount(mount.target, volume.host_path, type="bind", read_only=mount.read_only))
        elif volume.kind != "memory":
            read_only = mount.read_only or volume.kind == "files"
            mounts.append(_volume(run, volumes.key(spec, volume), mount.target, read_only=read_only))
    return mounts


def _volume(run: RunLabels, key: str, target: str, *, read_only: bool) -> Mount:
    # no_copy: a mounted Secret hides what the image has there, as in a cluster.
    return Mount(target, run.volume(key), type="volume", read_only=read_only, no_copy=True, labels=run.all())


def _tmpfs(size: int | None) -> str:
    return "rw,exec,nosuid,nodev,mode=0777" + (f",size={size}" if size else "")
