"""Projections: the few fields of an object that the operator needs. A raw pod takes 34 kB, its projection 2 kB."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiboot.job import job_annotations, names
from mpiboot.job.plan import host_lists, objects

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.kube.api import Object


MADE_FROM = f"{job_annotations.PREFIX}made-from"  # annotation of what the API server adds to: a digest of what was sent


@dataclass(frozen=True, slots=True)
class Owner:
    """The controller named in an object's owner references."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Meta:
    """What every object has. `version` grows with each change of anything in the cluster."""

    namespace: str
    name: str
    uid: str
    version: int
    owner: Owner | None
    deleting: bool
    created: str


@dataclass(frozen=True, slots=True)
class BaseView:
    """What all projections have."""

    meta: Meta

    @property
    def namespace(self) -> str:
        return self.meta.namespace

    @property
    def name(self) -> str:
        return self.meta.name

    @property
    def version(self) -> int:
        return self.meta.version


@dataclass(frozen=True, slots=True)
class ObjectView(BaseView):
    """A Service or a ConfigMap. `digest` shows whether its contents differ from what the operator would write."""

    key: str
    digest: str


@dataclass(frozen=True, slots=True)
class ConfigMapView(ObjectView):
    """A ConfigMap and what its hostfile was written for: slots and runtime, and whether the launcher takes ranks."""

    written_for: tuple[int, str] | None
    launcher_works: bool


@dataclass(frozen=True, slots=True)
class PodGroupView(ObjectView):
    """A PodGroup. `digest` is of the spec that the operator wrote: schedulers add fields of their own."""

    api_version: str


@dataclass(frozen=True, slots=True)
class MpiJobView(BaseView):
    """The whole MPIJob: the reader needs all of it."""

    raw: Object

    @property
    def key(self) -> str:
        return f"{self.meta.namespace}/{self.meta.name}"


def meta(found: Object) -> Meta:
    fields = found["metadata"]
    namespace, name, uid = fields.get("namespace", ""), fields["name"], fields["uid"]
    if not all(isinstance(each, str) for each in (namespace, name, uid)):
        raise TypeError("namespace, name and uid must be text")
    owner = next((ref for ref in fields.get("ownerReferences", ()) if ref.get("controller")), None)
    return Meta(
        namespace=namespace,
        name=name,
        uid=uid,
        version=int(fields["resourceVersion"]),
        owner=Owner(owner["kind"], owner["name"], owner["uid"]) if owner else None,
        deleting="deletionTimestamp" in fields,
        created=fields.get("creationTimestamp", ""),
    )


def job_key(found: Object) -> str | None:
    """NAMESPACE/NAME of the job whose labels the object carries."""
    fields = found["metadata"]
    name = (fields.get("labels") or {}).get(names.JOB_LABEL)
    return f"{fields.get('namespace', '')}/{name}" if name else None


def mpi_job_view(found: Object) -> MpiJobView:
    found["metadata"].pop("managedFields", None)  # which client wrote which field: often half of the object
    return MpiJobView(meta(found), found)


def config_map_view(found: Object) -> ConfigMapView | None:
    key = job_key(found)
    if not key:
        return None
    data = found.get("data") or {}
    written_for = host_lists.read_hostfile(data.get(objects.HOSTFILE, ""))
    return ConfigMapView(meta(found), key, digest(data), written_for, objects.LAUNCHERS_HOSTFILE in data)


def service_view(found: Object) -> ObjectView | None:
    key = job_key(found)
    return ObjectView(meta(found), key, digest(service_contents(found))) if key else None


def made_from(found: Object) -> str:
    """The digest of what the operator sent; empty if another program made the object."""
    return str((found["metadata"].get("annotations") or {}).get(MADE_FROM, ""))


def pod_group_view(found: Object) -> PodGroupView | None:
    key = job_key(found)
    return PodGroupView(meta(found), key, made_from(found), str(found["apiVersion"])) if key else None


def service_contents(manifest: Mapping[str, Any]) -> object:
    """The fields of a Service that the operator sets; the API server fills in the others."""
    spec = manifest["spec"]
    return spec.get("selector"), bool(spec.get("publishNotReadyAddresses"))


def digest(contents: object) -> str:
    return hashlib.blake2b(json.dumps(contents, sort_keys=True).encode(), digest_size=12).hexdigest()
