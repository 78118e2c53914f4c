"""Checking a pod template: what the plan must be able to rely on is an error, all other oddities are warnings.

A template is the user's and the API server's affair: what neither of them would mind is not refused here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.job.fields import Fields, is_plain
from mpiboot.job.podfields import POD_TEMPLATE, Shape
from mpiboot.job.values import Json, kind, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

# The plan adds to these, so they must be what they should be.
SPEC_LISTS = ("volumes", "schedulingGates")
SPEC_MAPPINGS = ("securityContext", "dnsConfig")
CONTAINER_LISTS = ("command", "args", "env", "volumeMounts", "ports")
CONTAINER_MAPPINGS = ("securityContext",)


def check(fields: Fields) -> None:
    """Note all that is wrong with the template under a cursor."""
    rely_on(fields)
    oddities(fields, fields.path, fields.value, POD_TEMPLATE)


def rely_on(fields: Fields) -> None:
    """Errors about the parts that the plan reads or adds to."""
    metadata, spec = fields.mapping("metadata"), fields.mapping("spec")
    of_type(metadata, (), ("labels", "annotations"))
    of_type(spec, SPEC_LISTS, SPEC_MAPPINGS)
    of_type(spec.mapping("dnsConfig"), ("searches",), ())
    containers = spec.get("containers")
    if containers is None or containers == []:
        spec.note("containers", "must hold at least one container")
        return
    if not isinstance(containers, list):
        spec.note("containers", f"must be a list, is {kind(containers)}")
        return
    for index, value in enumerate(containers):
        container = Fields(fields.manifest, fields.problems, (*spec.path, "containers", index), value)
        if isinstance(value, dict):
            of_type(container, CONTAINER_LISTS, CONTAINER_MAPPINGS)
            text_items(container)
        else:
            container.note(None, f"must be a mapping, is {kind(value)}")


def of_type(fields: Fields, lists: tuple[str, ...], mappings: tuple[str, ...]) -> None:
    for name in lists:
        value = fields.get(name)
        if value is not None and not isinstance(value, list):
            fields.note(name, f"must be a list, is {kind(value)}")
    for name in mappings:
        fields.mapping(name)


def text_items(container: Fields) -> None:
    """Warn where a number or truth value stands for text: `args: [-n, 2]`. The plan writes its text instead."""
    for name in ("command", "args"):
        items = container.get(name)
        for index, item in enumerate(items if isinstance(items, list) else ()):
            not_text(container, (name, index), item)
    variables = container.get("env")
    for index, variable in enumerate(variables if isinstance(variables, list) else ()):
        if isinstance(variable, dict) and variable.get("value") is not None:
            not_text(container, ("env", index, "value"), variable["value"])


def not_text(container: Fields, where: tuple[str | int, ...], value: Json) -> None:
    if not isinstance(value, str) and is_plain(value):
        inner = Fields(container.manifest, container.problems, (*container.path, *where))
        inner.note(None, f"must be text, is {kind(value)}: put it in quotes; used as {as_text(value)!r}", "warning")


def as_text(value: Json) -> Json:
    """What a user means who forgot the quotes: `2`, `true`. Text, lists and mappings stay what they are."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (int, float)) else value


def oddities(fields: Fields, path: tuple[str | int, ...], value: Json, shape: Shape) -> None:
    """Warn of every field in a template that Kubernetes does not know."""
    if isinstance(shape, list) and isinstance(value, list):
        for index, item in enumerate(value):
            oddities(fields, (*path, index), item, shape[0])
    if not isinstance(shape, dict) or not isinstance(value, dict):
        return
    known: Mapping[str, Shape] = shape
    for name, inner in value.items():
        if name in known:
            oddities(fields, (*path, name), inner, known[name])
        else:
            here = Fields(fields.manifest, fields.problems, (*path, name))
            here.note(None, f"unknown field, kept; Kubernetes will ignore it{nearest(name, known)}", "warning")
