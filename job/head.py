"""What every API version has in common: what kind of object it is, and its metadata."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from mpiboot.job import names
from mpiboot.job.units import DEFAULT_PER_NODE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.job.fields import Fields
    from mpiboot.job.model import Dialect


class OfJob(TypedDict):
    """What a Job takes over from its head."""

    api_version: str
    dialect: Dialect
    name: str
    namespace: str
    uid: str | None
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


@dataclass(frozen=True)
class Head:
    """Kind and metadata of an MPIJob, checked."""

    of_job: OfJob
    units_per_node: int = DEFAULT_PER_NODE  # the installation's, for v1alpha1


def read(root: Fields, dialect: Dialect, units_per_node: int) -> Head:
    """The head of an object whose kind and apiVersion are known to be good."""
    root.known("apiVersion", "kind", "metadata", "spec", "status")
    metadata = root.mapping("metadata")
    name = metadata.text("name", "") or ""
    if not name and metadata.get("generateName"):
        metadata.note("name", "must be given; generateName needs an API server to make a name of it")
    elif not name and metadata.get("name") in (None, ""):
        metadata.note("name", "must be given")
    namespace = metadata.text("namespace", "default") or "default"
    if fault := names.label_fault(namespace, may_start_with_digit=True):
        metadata.note("namespace", f"{namespace!r} {fault}")
    of_job = OfJob(
        api_version=str(root.get("apiVersion")),
        dialect=dialect,
        name=name,
        namespace=namespace,
        uid=metadata.text("uid"),
        labels=metadata.texts("labels"),
        annotations=metadata.texts("annotations"),
    )
    return Head(of_job, units_per_node)
