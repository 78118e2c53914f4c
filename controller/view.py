"""What the operator keeps of an object: the few fields it decides by. A raw pod is 34 kB in memory, a view 2 kB."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiboot.job import hostfile, labels, objects

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.controller.api import Object
    from mpiboot.job.model import Implementation


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
    """What all views tell."""

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
    """A Service or a ConfigMap. `digest` tells whether its contents are what we would write."""

    key: str
    digest: str


@dataclass(frozen=True, slots=True)
class ConfigMapView(ObjectView):
    """A ConfigMap and what its hostfile was written for: slots and runtime, and whether the launcher takes ranks."""

    written_for: tuple[int, Implementation] | None
    launcher_works: bool


@dataclass(frozen=True, slots=True)
class MpiJobView(BaseView):
    """The MPIJob itself, whole: there are few of them, and reading needs all of it."""

    raw: Object

    @property
    def key(self) -> str:
        return f"{self.meta.namespace}/{self.meta.name}"


def meta(found: Object) -> Meta:
    fields = found["metadata"]
    owner = next((ref for ref in fields.get("ownerReferences", ()) if ref.get("controller")), None)
    return Meta(
        namespace=fields.get("namespace", ""),
        name=fields["name"],
        uid=fields["uid"],
        version=int(fields["resourceVersion"]),
        owner=Owner(owner["kind"], owner["name"], owner["uid"]) if owner else None,
        deleting="deletionTimestamp" in fields,
        created=fields.get("creationTimestamp", ""),
    )


def job_key(found: Object) -> str | None:
    """NAMESPACE/NAME of the job whose labels the object carries."""
    fields = found["metadata"]
    name = (fields.get("labels") or {}).get(labels.JOB_NAME)
    return f"{fields.get('namespace', '')}/{name}" if name else None


def mpi_job_view(found: Object) -> MpiJobView:
    found["metadata"].pop("managedFields", None)  # who wrote what: often half of the object
    return MpiJobView(meta(found), found)


def config_map_view(found: Object) -> ConfigMapView | None:
    key = job_key(found)
    if not key:
        return None
    data = found.get("data") or {}
    written_for = hostfile.read(data.get(objects.HOSTFILE, ""))
    return ConfigMapView(meta(found), key, digest(data), written_for, objects.LAUNCHERS_HOSTFILE in data)


def service_view(found: Object) -> ObjectView | None:
    key = job_key(found)
    return ObjectView(meta(found), key, digest(service_contents(found))) if key else None


def service_contents(manifest: Mapping[str, Any]) -> object:
    """What of a Service is ours to decide; the API server fills in the rest."""
    spec = manifest["spec"]
    return spec.get("selector"), bool(spec.get("publishNotReadyAddresses"))


def digest(contents: object) -> str:
    return hashlib.blake2b(json.dumps(contents, sort_keys=True).encode(), digest_size=12).hexdigest()
