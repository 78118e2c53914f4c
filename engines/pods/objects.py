"""The plan's Secret and ConfigMap by name, decoded. Environment and volumes of its pods refer to them."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.job.plan.plan import Plan

Kind = Literal["Secret", "ConfigMap"]


@dataclass(frozen=True)
class Objects:
    """Data of all objects that exist for a job on this machine, by kind and name."""

    data: Mapping[tuple[Kind, str], Mapping[str, bytes]] = field(default_factory=dict)

    def get(self, kind: Kind, name: str, *, optional: bool, pod: str) -> Mapping[str, bytes]:
        """An object's data; nothing if it is missing and optional."""
        found = self.data.get((kind, name))
        if found is None and not optional:
            known = ", ".join(sorted(known for of, known in self.data if of == kind)) or "none"
            raise UserError(
                f"{pod} needs the {kind} {name!r}, which is not part of the job (there: {known}); "
                "a job on this machine cannot read a cluster's objects: set the values themselves, or mark it optional"
            )
        return found or {}


def of_plan(plan: Plan) -> Objects:
    """The objects that the plan itself brings."""
    return Objects({
        ("Secret", _name(plan.secret)): secret_data(plan.secret),
        ("ConfigMap", _name(plan.config_map)): config_map_data(plan.config_map),
    })


def secret_data(manifest: Mapping[str, Any]) -> Mapping[str, bytes]:
    """A Secret's `data`, and `stringData` over it."""
    data = {key: base64.b64decode(value) for key, value in (manifest.get("data") or {}).items()}
    return data | {key: value.encode() for key, value in (manifest.get("stringData") or {}).items()}


def config_map_data(manifest: Mapping[str, Any]) -> Mapping[str, bytes]:
    """A ConfigMap's `data` and `binaryData`."""
    data = {key: value.encode() for key, value in (manifest.get("data") or {}).items()}
    return data | {key: base64.b64decode(value) for key, value in (manifest.get("binaryData") or {}).items()}


def _name(manifest: Mapping[str, Any]) -> str:
    return str(manifest["metadata"]["name"])
