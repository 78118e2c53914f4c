"""Lint of files without an MPIJob: values of the Helm chart, old definitions, pods of the package openmpi."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.job.problems import Problem, path_text
from mpiboot.job.suggestions import nearest
from mpiboot.job.values import Json, kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mpiboot.job.problems import Path

# What the Helm chart's values may hold. None: anything below it.
VALUES: Mapping[str, Mapping[str, type] | None] = {
    "image": {"repository": str, "tag": str, "digest": str, "pullPolicy": str},
    "namespace": {"create": bool, "name": str},
    "serviceAccount": {"create": bool, "name": str, "annotations": dict},
    "replicaCount": None, "resources": None, "nodeSelector": None, "tolerations": None, "affinity": None,
    "podAnnotations": None, "imagePullSecrets": None, "nameOverride": None, "fullnameOverride": None,
    "podSecurityContext": None, "securityContext": None, "settings": None,
}  # fmt: skip
SURE_SIGNS = frozenset({"image", "replicaCount", "namespace"})

OPENMPI_HOME = "/kubeflow/openmpi"


def findings(data: Json, lines: Mapping[Path, int]) -> Iterator[Problem]:
    """The findings in one document."""
    if not isinstance(data, dict):
        return
    if is_values(data):
        yield from values(data, lines)
        return
    items = data.get("items")
    if isinstance(items, list) and str(data.get("kind")).endswith("List"):
        for index, item in enumerate(items):
            yield from of_object(item, ("items", index), lines)
    else:
        yield from of_object(data, (), lines)


def is_values(data: Json) -> bool:
    """Whether a document holds values of the chart, right or wrong."""
    return isinstance(data, dict) and not {"kind", "apiVersion"} & data.keys() and bool(SURE_SIGNS & data.keys())


def of_object(data: Json, path: Path, lines: Mapping[Path, int]) -> Iterator[Problem]:
    if not isinstance(data, dict):
        return
    metadata = data.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if data.get("kind") == "CustomResourceDefinition" and name == "mpijobs.kubeflow.org":
        if data.get("apiVersion") == "apiextensions.k8s.io/v1beta1":
            message = "Kubernetes 1.22 and newer refuse this version: apply deploy/crd.yaml, which has all versions"
            yield found((*path, "apiVersion"), message, lines)
    elif data.get("kind") == "Pod" and OPENMPI_HOME in str(data.get("spec")):
        message = f"{name} was made by the package openmpi: mpiboot generate openmpi makes it again"
        yield found((*path, "metadata"), message, lines)


def values(data: Mapping[str, Json], lines: Mapping[Path, int]) -> Iterator[Problem]:
    """Findings in the values of the Helm chart."""
    for name, value in data.items():
        inner = VALUES.get(name)
        if name not in VALUES:
            yield found((name,), f"the chart has no such value{nearest(name, VALUES)}", lines)
        elif inner is not None and not isinstance(value, dict):
            yield found((name,), f"must be a mapping of {', '.join(inner)}; is {kind(value)}", lines)
        elif inner is not None:
            yield from below(name, value, inner, lines)


def below(
    above: str, data: Mapping[str, Json], known: Mapping[str, type], lines: Mapping[Path, int]
) -> Iterator[Problem]:
    words = {str: "text", bool: "true or false", dict: "a mapping"}
    for name, value in data.items():
        if name not in known:
            yield found((above, name), f"the chart has no such value{nearest(name, known)}", lines)
        elif value is not None and not isinstance(value, known[name]):
            quotes = "; put it in quotes" if known[name] is str and not isinstance(value, (dict, list)) else ""
            yield found((above, name), f"must be {words[known[name]]}, is {kind(value)}{quotes}", lines)


def found(path: Path, message: str, lines: Mapping[Path, int]) -> Problem:
    return Problem(path_text(path), message, lines.get(path), "warning")
