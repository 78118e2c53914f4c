"""A pod's volumes as values: files to write, empty directories, paths of the host. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from mpiboot.engines.pods import pod_environment
from mpiboot.job import job_annotations
from mpiboot.job.quantity import whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mpiboot.engines.pods.objects import Objects

# The launcher reads the addresses of its workers from the file with this annotation.
ADDRESSES = f"metadata.annotations['{job_annotations.ADDRESSES}']"
KINDS = ("emptyDir", "secret", "configMap", "downwardAPI", "projected", "hostPath")


@dataclass(frozen=True)
class File:
    """A file in a volume, at a path relative to it."""

    path: str
    data: bytes
    mode: int


@dataclass(frozen=True)
class Volume:
    """A volume: `files` of the plan, an `empty` directory, `memory` (an empty tmpfs), or a directory of the `host`."""

    name: str
    kind: Literal["files", "empty", "memory", "host"]
    files: tuple[File, ...] = ()
    group: int | None = None  # fsGroup: the files belong to it and it may read them
    size: int | None = None  # bytes at most
    host_path: str = ""
    addresses: str = ""  # the file in it that gets the workers' addresses


def volumes(pod: Mapping[str, Any], objects: Objects, ignored: list[str]) -> dict[str, Volume]:
    """The pod's volumes by name. Kinds that exist only in a cluster become empty directories, named in `ignored`."""
    group = (pod["spec"].get("securityContext") or {}).get("fsGroup")
    found = {}
    for volume in pod["spec"].get("volumes") or ():
        name = str(volume["name"])
        kind = next((key for key in KINDS if volume.get(key) is not None), None)
        if kind is None:
            others = [key for key in volume if key != "name"] or ["emptyDir"]
            if others != ["emptyDir"]:
                ignored.append(f"volume {name} ({others[0]}; an empty directory instead)")
            found[name] = Volume(name, "empty", group=group)
        elif kind == "emptyDir":
            found[name] = _empty(name, volume["emptyDir"], group)
        elif kind == "hostPath":
            found[name] = Volume(name, "host", host_path=str(volume["hostPath"]["path"]))
        else:
            found[name] = _files(name, kind, volume[kind], pod, objects, group, ignored)
    return found


def _empty(name: str, source: Mapping[str, Any], group: int | None) -> Volume:
    limit = source.get("sizeLimit")
    size = whole(limit, f"volume {name}: sizeLimit") if limit is not None else None
    return Volume(name, "memory" if source.get("medium") == "Memory" else "empty", group=group, size=size)


def _files(
    name: str, kind: str, source: Mapping[str, Any], pod: Mapping[str, Any], objects: Objects, group: int | None,
    ignored: list[str],
) -> Volume:  # fmt: skip
    default = int(source.get("defaultMode", 0o644))
    parts = source.get("sources") or () if kind == "projected" else ({kind: source},)
    files: list[File] = []
    addresses = ""
    for part in parts:
        ((of, content),) = part.items()
        if of == "downwardAPI":
            for item in content.get("items") or ():
                field = (item.get("fieldRef") or {}).get("fieldPath", "a resource")
                if field == ADDRESSES:
                    addresses = str(item["path"])
                value = pod_environment.field(pod, field)
                if value is None:
                    ignored.append(f"volume {name}: {item['path']} from {field}")
                elif field != ADDRESSES or value:
                    files.append(File(str(item["path"]), value.encode(), _mode(item, default, group)))
        elif of in {"secret", "configMap"}:
            files += _items(of, content, objects, f"{pod['metadata']['name']}: volume {name}", default, group)
        else:
            ignored.append(f"volume {name}: {of}")
    return Volume(name, "files", tuple(files), group, addresses=addresses)


def _items(
    of: str, content: Mapping[str, Any], objects: Objects, pod: str, default: int, group: int | None
) -> Iterator[File]:
    named = str(content.get("secretName") or content.get("name") or "")
    optional = bool(content.get("optional"))
    data = objects.get("Secret" if of == "secret" else "ConfigMap", named, optional=optional, pod=pod)
    items = content.get("items") or [{"key": key, "path": key} for key in sorted(data)]
    for item in items:
        if item["key"] in data:
            yield File(str(item["path"]), data[item["key"]], _mode(item, default, group))


def _mode(item: Mapping[str, Any], default: int, group: int | None) -> int:
    # The kubelet lets an fsGroup read what its owner may read.
    mode = int(item.get("mode", default))
    return mode if group is None else mode | (mode & 0o400) >> 3
