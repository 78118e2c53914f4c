"""The environment, command and arguments of a pod's container, as its kubelet would work them out. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpiboot.engines.objects import Objects

# `$(NAME)` is a reference, `$$(NAME)` is the text `$(NAME)`.
REFERENCE = re.compile(r"\$\$|\$\(([^()]+)\)")
SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


def environment(
    pod: Mapping[str, Any], container: Mapping[str, Any], objects: Objects, unmet: list[str]
) -> dict[str, str]:
    """The container's variables. What only a cluster knows is left out and named in `unmet`."""
    who = pod["metadata"]["name"]
    env: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        env.update(_all_of(source, objects, who))
    for entry in container.get("env") or ():
        value = entry.get("value")
        if value is not None:
            env[entry["name"]] = expanded(str(value), env)
        elif "valueFrom" in entry:
            found = _referred(entry, pod, objects, unmet)
            if found is not None:
                env[entry["name"]] = found
        else:
            env[entry["name"]] = ""
    return env


def expanded(text: str, env: Mapping[str, str]) -> str:
    """`text` with its `$(NAME)` replaced; unknown names stay as they are."""

    def value(match: re.Match[str]) -> str:
        return "$" if match[1] is None else env.get(match[1], match[0])

    return REFERENCE.sub(value, text)


def words(container: Mapping[str, Any], key: str, env: Mapping[str, str]) -> Sequence[str] | None:
    """The container's `command` or `args`, expanded; None if it has none, so that the image's own counts."""
    given = container.get(key)
    return [expanded(str(word), env) for word in given] if given else None


def field(pod: Mapping[str, Any], path: str) -> str | None:
    """What `fieldRef` finds; None for fields that only a cluster fills in."""
    metadata = pod["metadata"]
    if match := SUBSCRIPT.fullmatch(path):
        return str((metadata.get(match[1]) or {}).get(match[2], ""))
    plain = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata.get("namespace", "default"),
        "metadata.uid": metadata.get("uid"),
        "spec.serviceAccountName": pod["spec"].get("serviceAccountName", "default"),
    }
    return plain.get(path)


def _all_of(source: Mapping[str, Any], objects: Objects, who: str) -> dict[str, str]:
    prefix = source.get("prefix", "")
    found: Mapping[str, bytes] = {}
    if ref := source.get("configMapRef"):
        found = objects.get("ConfigMap", ref["name"], optional=bool(ref.get("optional")), who=who)
    elif ref := source.get("secretRef"):
        found = objects.get("Secret", ref["name"], optional=bool(ref.get("optional")), who=who)
    return {prefix + key: value.decode(errors="replace") for key, value in found.items()}


def _referred(entry: Mapping[str, Any], pod: Mapping[str, Any], objects: Objects, unmet: list[str]) -> str | None:
    who, source = pod["metadata"]["name"], entry["valueFrom"]
    if ref := source.get("fieldRef"):
        value = field(pod, ref["fieldPath"])
        if value is None:
            unmet.append(f"env {entry['name']} from {ref['fieldPath']}")
        return value
    for key, kind in (("secretKeyRef", "Secret"), ("configMapKeyRef", "ConfigMap")):
        if ref := source.get(key):
            optional = bool(ref.get("optional"))
            data = objects.get(kind, ref["name"], optional=optional, who=who)  # type: ignore[arg-type]
            value_bytes = data.get(ref["key"])
            return None if value_bytes is None else value_bytes.decode(errors="replace")
    unmet.append(f"env {entry['name']} from {', '.join(source)}")
    return None
