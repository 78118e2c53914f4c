"""The volumes of a job and their files. One container that never starts receives all of them in one archive.

Why volumes and not bind mounts: the engine may be on another machine. Why a container of their own: the containers that
mount them may have a read-only root, and an archive into a mount point cannot set the mode of that directory.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mpiboot.engines.docker.podspec import ContainerSpec
    from mpiboot.engines.pods.pod_volumes import Volume


def key(spec: ContainerSpec, volume: Volume) -> str:
    """The name of a volume within its run. Containers with the same files share it; each has its own scratch space."""
    if volume.kind != "files":
        return f"{spec.role}-{spec.index}-{volume.name}"
    digest = hashlib.sha256(repr((volume.files, volume.group)).encode()).hexdigest()[:10]
    return f"{spec.role}-{volume.name}-{digest}"


def needed(specs: Iterable[ContainerSpec]) -> dict[str, Volume]:
    """The volumes that the engine keeps for these containers, by key."""
    return {
        key(spec, mount.volume): mount.volume
        for spec in specs
        for mount in spec.mounts
        if mount.volume.kind in {"files", "empty"}
    }


def archive(volumes: Mapping[str, Volume]) -> bytes:
    """A tar that fills the volumes when each is mounted at its key in the root."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for at, volume in volumes.items():
            shared = volume.kind == "empty"
            _add(tar, at, None, 0o2777 if shared and volume.group else 0o777 if shared else 0o755, volume.group)
            parents: set[str] = set()
            for file in volume.files:
                steps = file.path.split("/")[:-1]
                for depth in range(1, len(steps) + 1):
                    parent = "/".join(steps[:depth])
                    if parent not in parents:
                        parents.add(parent)
                        _add(tar, f"{at}/{parent}", None, 0o755, volume.group)
                _add(tar, f"{at}/{file.path}", file.data, file.mode, volume.group)
    return buffer.getvalue()


def one_file(path: str, data: bytes, mode: int = 0o444) -> bytes:
    """A tar of one file that all may read. It is complete before it gets its name: a program may read it at any time.

    The engine removes the old file first, so readers must tolerate a moment without a file.
    """
    folder, _, name = path.rpartition("/")
    beside = f"{folder}/.{name}.new".lstrip("/")
    link = tarfile.TarInfo(path)
    link.type, link.linkname, link.mode = tarfile.LNKTYPE, beside, mode
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        _add(tar, beside, data, mode, None)
        tar.addfile(link)
    return buffer.getvalue()


def _add(tar: tarfile.TarFile, path: str, data: bytes | None, mode: int, group: int | None) -> None:
    entry = tarfile.TarInfo(path)
    entry.mode, entry.gid = mode, group or 0
    if data is None:
        entry.type = tarfile.DIRTYPE
        tar.addfile(entry)
    else:
        entry.size = len(data)
        tar.addfile(entry, io.BytesIO(data))
