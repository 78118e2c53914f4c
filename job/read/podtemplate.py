"""Checks a pod template: what the plan relies on is an error, everything else that is odd is a warning.

The API server checks the rest of a template; nothing is refused here that the API server accepts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.job.read.podfields import POD_TEMPLATE, Shape
from mpiboot.job.suggestions import nearest
from mpiboot.job.values import Json, as_text, is_plain, kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.job.read.fields import Fields

# The plan reads these or adds to them, so they must be what they should be.
SPEC_LISTS = ("volumes", "schedulingGates", "initContainers")
SPEC_MAPPINGS = ("securityContext", "dnsConfig", "nodeSelector")
CONTAINER_LISTS = ("command", "args", "env", "volumeMounts", "ports")
CONTAINER_MAPPINGS = ("securityContext",)


def check(template: Fields) -> None:
    """Note everything that is wrong with the template under a cursor."""
    metadata, spec = template.mapping("metadata"), template.mapping("spec")
    types(metadata, (), ("labels", "annotations"))
    types(spec, SPEC_LISTS, SPEC_MAPPINGS)
    types(spec.mapping("dnsConfig"), ("searches",), ())
    for texts in (metadata.mapping("labels"), metadata.mapping("annotations"), spec.mapping("nodeSelector")):
        for key, value in texts.value.items():
            is_text(texts, (key,), value)
    if spec.get("containers") in (None, []):
        spec.note("containers", "must hold at least one container")
    for name in ("containers", "initContainers"):
        containers(spec, name)
    oddities(template, (), template.value, POD_TEMPLATE)


def types(fields: Fields, lists: tuple[str, ...], mappings: tuple[str, ...]) -> None:
    """Note an error where a list or a mapping is expected and something else is there."""
    for name in lists:
        value = fields.get(name)
        if value is not None and not isinstance(value, list):
            fields.note(name, f"must be a list, is {kind(value)}")
    for name in mappings:
        fields.mapping(name)


def containers(spec: Fields, name: str) -> None:
    """Check each container of a list of them."""
    values = spec.get(name)
    if values is not None and not isinstance(values, list):
        spec.note(name, f"must be a list, is {kind(values)}")
    for index, value in enumerate(values if isinstance(values, list) else ()):
        container = spec.inner((name, index), value)
        if not isinstance(value, dict):
            container.note(None, f"must be a mapping, is {kind(value)}")
            continue
        types(container, CONTAINER_LISTS, CONTAINER_MAPPINGS)
        words(container)


def words(container: Fields) -> None:
    """Warn where a number or truth value stands for text: `args: [-n, 2]`."""
    for name in ("command", "args"):
        items = container.get(name)
        for index, item in enumerate(items if isinstance(items, list) else ()):
            is_text(container, (name, index), item)
    variables = container.get("env")
    for index, variable in enumerate(variables if isinstance(variables, list) else ()):
        if isinstance(variable, dict) and variable.get("value") is not None:
            is_text(container, ("env", index, "value"), variable["value"])


def is_text(fields: Fields, where: tuple[str | int, ...], value: Json) -> None:
    """Warn of a value that should be text and is not. The plan writes the text that was meant, if that is clear."""
    if isinstance(value, str):
        return
    message = f"must be text, is {kind(value)}"
    if is_plain(value) and value is not None:
        message += f": put it in quotes; used as {as_text(value)!r}"
    fields.inner(where).note(None, message, "warning")


def oddities(template: Fields, path: tuple[str | int, ...], value: Json, shape: Shape) -> None:
    """Warn of every field in a template that Kubernetes does not know."""
    if isinstance(shape, list) and isinstance(value, list):
        for index, item in enumerate(value):
            oddities(template, (*path, index), item, shape[0])
    if not isinstance(shape, dict) or not isinstance(value, dict):
        return
    known: Mapping[str, Shape] = shape
    for name, inner in value.items():
        if name in known:
            oddities(template, (*path, name), inner, known[name])
        elif template.problems.full("warning"):
            template.problems.count("warning")
        else:
            message = f"unknown field, kept; Kubernetes will ignore it{nearest(name, known)}"
            template.inner((*path, name)).note(None, message, "warning")
