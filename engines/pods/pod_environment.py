"""The environment, command and arguments of a pod's container, by the rules of the kubelet. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpiboot.engines.pods.objects import Objects

# `$(NAME)` is a reference, `$$(NAME)` is the text `$(NAME)`.
REFERENCE = re.compile(r"\$\$|\$\(([^()]+)\)")
SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


def environment(
    pod: Mapping[str, Any], container: Mapping[str, Any], objects: Objects, ignored: list[str]
) -> dict[str, str]:
    """The container's variables. A value that exists only in a cluster is left out and named in `ignored`."""
    name = pod["metadata"]["name"]
    env: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        env.update(_all_of(source, objects, name))
    for entry in container.get("env") or ():
        value = entry.get("value")
        if value is not None:
            env[entry["name"]] = expanded(str(value), env)
        elif "valueFrom" in entry:
            found = _referred(entry, pod, objects, ignored)
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
    """The container's `command` or `args`, expanded; None if it has none: then the image's own is used."""
    given = container.get(key)
    return [expanded(str(word), env) for word in given] if given else None


def field(pod: Mapping[str, Any], path: str) -> str | None:
    """The value of a `fieldRef`; None for fields that only a cluster fills in."""
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


def _all_of(source: Mapping[str, Any], objects: Objects, name: str) -> dict[str, str]:
    prefix = source.get("prefix", "")
    found: Mapping[str, bytes] = {}
    if ref := source.get("configMapRef"):
        found = objects.get("ConfigMap", ref["name"], optional=bool(ref.get("optional")), pod=name)
    elif ref := source.get("secretRef"):
        found = objects.get("Secret", ref["name"], optional=bool(ref.get("optional")), pod=name)
    return {prefix + key: value.decode(errors="replace") for key, value in found.items()}


def _referred(entry: Mapping[str, Any], pod: Mapping[str, Any], objects: Objects, ignored: list[str]) -> str | None:
    name, source = pod["metadata"]["name"], entry["valueFrom"]
    if ref := source.get("fieldRef"):
        value = field(pod, ref["fieldPath"])
        if value is None:
            ignored.append(f"env {entry['name']} from {ref['fieldPath']}")
        return value
    for key, kind in (("secretKeyRef", "Secret"), ("configMapKeyRef", "ConfigMap")):
        if ref := source.get(key):
            optional = bool(ref.get("optional"))
            data = objects.get(kind, ref["name"], optional=optional, pod=name)  # type: ignore[arg-type]
            value_bytes = data.get(ref["key"])
            return None if value_bytes is None else value_bytes.decode(errors="replace")
    ignored.append(f"env {entry['name']} from {', '.join(source)}")
    return None
