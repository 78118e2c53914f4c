"""What a prototype is: its parameters as data, and a function from their values to objects of Kubernetes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.job.prototypes.parameter_values import ParameterValues

Object = dict[str, Any]


@dataclass(frozen=True)
class Parameter:
    """One parameter, as `--name VALUE`. The text `null` means absent; a default of None means that it must be given."""

    name: str
    default: str | None
    help: str


@dataclass(frozen=True)
class Manifests:
    """The objects in the order in which they are to be created, and what their reader should know."""

    objects: tuple[Object, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prototype:
    """`make` raises UserError, in one line, for values that do not fit."""

    name: str
    summary: str
    parameters: tuple[Parameter, ...]
    make: Callable[[ParameterValues], Manifests]
