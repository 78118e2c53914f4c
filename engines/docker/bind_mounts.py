"""Directories of this machine in a container, and the user who owns what the container writes there."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mpiboot.engines.docker.podspec import Mount
from mpiboot.engines.pods.pod_volumes import Volume

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from docker import APIClient

    from mpiboot.engines.directories import Directories
    from mpiboot.engines.docker.podspec import ContainerSpec
    from mpiboot.engines.docker.pull import Image

ROOT_GROUP = 0  # what our images let any user write belongs to it
ON_THIS_MACHINE = {"http+docker://localhost", "http+docker://localnpipe"}  # as docker-py calls a local socket


@dataclass(frozen=True)
class User:
    """A user of a container, with its groups."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.uid}:{self.gid}"


def caller(machine: Mapping[str, Any]) -> User:
    """The user of a container whose files belong to the user who runs this program."""
    return user_of(machine.get("SecurityOptions") or (), os.getuid(), os.getgid(), os.getgroups())


def user_of(engine_options: Iterable[str], uid: int, gid: int, groups: Iterable[int]) -> User:
    """The same for any user."""
    # A rootless engine runs as the user: its root is the user, and its other users are other ones here, too.
    if uid == 0 or any(option.startswith("name=rootless") for option in engine_options):
        return User(0, 0)
    return User(uid, gid, tuple(sorted({ROOT_GROUP, *groups} - {gid})))


def in_container(spec: ContainerSpec, directories: Directories, user: User | None) -> ContainerSpec:
    """The container with these directories; a `user` counts where the pod names none."""
    shown = [*([directories.workdir] if directories.workdir else []), *directories.mounts]
    if not shown:
        return spec
    mounts = [
        Mount(Volume(one.target, "host", host_path=one.source), one.target, one.read_only) for one in shown
    ]
    security = spec.security
    if user and security.user is None:
        security = replace(security, user=str(user), groups=(*security.groups, *user.groups))
    here = directories.workdir.target if directories.workdir else spec.working_dir
    return replace(spec, mounts=(*spec.mounts, *mounts), working_dir=here, security=security)


def other_owners(specs: Iterable[ContainerSpec], images: Iterable[Image], user: User) -> Iterator[str]:
    """A line for each image whose programs write as another user to directories of this machine."""
    writing = {spec.image for spec in specs if spec.security.user is None and any(map(_is_written, spec.mounts))}
    for image in images:
        uid = "0" if image.runs_as_root else image.user.partition(":")[0]
        if image.name in writing and uid != str(user.uid):
            name = "root" if uid == "0" else uid
            yield f"{image.name} has a user of its own: files that the job writes here belong to {name}"


def _is_written(mount: Mount) -> bool:
    return mount.volume.kind == "host" and not mount.read_only


def is_here(api: APIClient) -> bool:
    """Whether the engine sees this machine's directories: it answers at a socket of this machine."""
    return str(api.base_url) in ON_THIS_MACHINE
