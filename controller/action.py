"""What the operator can do to the cluster, as values: `decide` makes them, `act` carries them out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.controller.kinds import Kind


@dataclass(frozen=True)
class Create:
    """Bring an object about. One of that name that belongs to somebody else stops the job."""

    kind: Kind
    manifest: Mapping[str, Any]

    def __str__(self) -> str:
        return f"create {self.kind.name} {self.manifest['metadata']['name']}"


@dataclass(frozen=True)
class Delete:
    """Remove the object of this uid."""

    kind: Kind
    name: str
    uid: str

    def __str__(self) -> str:
        return f"delete {self.kind.name} {self.name}"


@dataclass(frozen=True)
class Patch:
    """Change some fields of an object."""

    kind: Kind
    name: str
    patch: Mapping[str, Any]
    form: str

    def __str__(self) -> str:
        return f"change {self.kind.name} {self.name}"


@dataclass(frozen=True)
class Resume:
    """Let a suspended batch Job go on, with the scheduling wishes that its job has now."""

    name: str
    template: Mapping[str, Any]

    def __str__(self) -> str:
        return f"resume Job {self.name}"


Action = Create | Delete | Patch | Resume


@dataclass(frozen=True)
class Stage:
    """Actions that may run at once. The next stage begins when all of them are done."""

    actions: tuple[Action, ...]
