"""What every API version has in common: the kind of the object, and its metadata."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from mpiboot.job import names
from mpiboot.job.gpu_units import DEFAULT_PER_NODE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.job.model import Dialect
    from mpiboot.job.read.fields import Fields


class JobFields(TypedDict):
    """The fields of a Job that come from the metadata."""

    api_version: str
    dialect: Dialect
    name: str
    namespace: str
    uid: str | None
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


@dataclass(frozen=True)
class Metadata:
    """Kind and metadata of an MPIJob, checked."""

    job_fields: JobFields
    units_per_node: int = DEFAULT_PER_NODE  # the installation's, for v1alpha1


def read(root: Fields, dialect: Dialect, units_per_node: int) -> Metadata:
    """The metadata of an object whose kind and apiVersion were checked."""
    root.known("apiVersion", "kind", "metadata", "spec", "status")
    metadata = root.mapping("metadata")
    name = metadata.text("name", "") or ""
    if not name and metadata.get("generateName"):
        metadata.note("name", "must be given; only an API server can make a name from generateName")
    elif not name and metadata.get("name") in (None, ""):
        metadata.note("name", "must be given")
    namespace = metadata.text("namespace", "default") or "default"
    if fault := names.label_fault(namespace, may_start_with_digit=True):
        metadata.note("namespace", f"{namespace!r} {fault}")
    job_fields = JobFields(
        api_version=str(root.get("apiVersion")),
        dialect=dialect,
        name=name,
        namespace=namespace,
        uid=metadata.text("uid"),
        labels=metadata.texts("labels"),
        annotations=metadata.texts("annotations"),
    )
    return Metadata(job_fields, units_per_node)
