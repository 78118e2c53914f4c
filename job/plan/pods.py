"""A user's pod template with a job's additions. Unchanged parts are shared with the template, not copied."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mpiboot.job import job_annotations
from mpiboot.job.template import main_index, mounted, spec_of
from mpiboot.job.values import as_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpiboot.job.plan.environment import Environment


@dataclass(frozen=True)
class Volume:
    """A volume and where the main container mounts it. If the template has a volume of that name, it gets another name.

    `filler` is an init container that mounts the volume at /delivered and fills it before the user's containers start.
    """

    name: str
    source: Mapping[str, Any]
    path: str
    filler: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Additions:
    """What a role's pods need beyond their template. `spec` and `container` replace fields of the same name."""

    labels: Mapping[str, str]
    environment: Environment
    volumes: Sequence[Volume]
    spec: Mapping[str, Any] = field(default_factory=dict)
    container: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


def with_additions(template: Mapping[str, Any], additions: Additions, main: str = "") -> dict[str, Any]:
    """The template with the additions: metadata and spec."""
    spec = dict(spec_of(template))
    names = free_names(spec.get("volumes") or (), additions.volumes)
    containers = [with_text(container) for container in spec.get("containers") or ()]
    position = main_index(template, main)
    containers[position] = added_container(containers[position], additions, names)
    if fillers := fillers_of(additions, names):
        spec["initContainers"] = [*fillers, *(spec.get("initContainers") or ())]
    if spec.get("initContainers"):
        spec["initContainers"] = [with_text(container) for container in spec["initContainers"]]
    if spec.get("nodeSelector"):
        spec["nodeSelector"] = texts(spec["nodeSelector"])
    added = [{"name": name, **volume.source} for name, volume in zip(names, additions.volumes, strict=True)]
    spec |= {"containers": containers, "volumes": [*(spec.get("volumes") or ()), *added], **additions.spec}
    return {"metadata": added_metadata(template.get("metadata") or {}, additions), "spec": spec}


def fillers_of(additions: Additions, names: Sequence[str]) -> list[Mapping[str, Any]]:
    return [
        {**volume.filler, "volumeMounts": [{"name": name, "mountPath": "/delivered"}]}
        for name, volume in zip(names, additions.volumes, strict=True)
        if volume.filler
    ]


def added_metadata(metadata: Mapping[str, Any], additions: Additions) -> dict[str, Any]:
    """Metadata with ours. A mesh's sidecar would keep a launcher from ending and ssh from passing, so none comes unless
    the user asks for it.
    """
    given, annotations = texts(metadata.get("labels") or {}), texts(metadata.get("annotations") or {})
    if job_annotations.ISTIO not in given:
        annotations.setdefault(job_annotations.ISTIO, "false")
    annotations |= additions.annotations
    return {**metadata, "labels": {**given, **additions.labels}, "annotations": annotations}


def added_container(container: Mapping[str, Any], additions: Additions, names: Sequence[str]) -> dict[str, Any]:
    mounts = [
        {"name": name, "mountPath": volume.path}
        for name, volume in zip(names, additions.volumes, strict=True)
        # A mount of the user's stays: a path can be mounted only once.
        if not mounted(container, volume.path)
    ]
    return {
        **container,
        "env": additions.environment.added_to(container.get("env") or ()),
        "volumeMounts": [*(container.get("volumeMounts") or ()), *mounts],
        **additions.container,
    }


def texts(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """The mapping with text for unquoted numbers."""
    return {key: as_text(value) for key, value in mapping.items()}


def free_names(given: Sequence[Any], volumes: Sequence[Volume]) -> list[str]:
    """Names for our volumes that the template does not use."""
    taken = {str(volume.get("name")) for volume in given if isinstance(volume, dict)}
    return [next(name for name in (volume.name, *numbered(volume.name)) if name not in taken) for volume in volumes]


def numbered(name: str) -> list[str]:
    return [f"mpiboot-{name}-{number}" for number in range(1, 100)]


def with_text(container: Mapping[str, Any]) -> Mapping[str, Any]:
    """A container whose unquoted numbers, where Kubernetes wants text, are text; the same one if there are none."""
    changed: dict[str, Any] = {}
    for name in ("command", "args"):
        items = container.get(name)
        if items and any(as_text(item) is not item for item in items):
            changed[name] = [as_text(item) for item in items]
    env = container.get("env") or ()
    if any(isinstance(item, dict) and as_text(item.get("value")) is not item.get("value") for item in env):
        changed["env"] = [
            {**item, "value": as_text(item["value"])} if isinstance(item, dict) and "value" in item else item
            for item in env
        ]
    return {**container, **changed} if changed else container
