"""Short functions for writing an OpenAPI schema."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def integer(help_text: str = "", *, bits: int = 32, most: int | None = None) -> Schema:
    limit = {} if most is None else {"maximum": most}
    return _with({"type": "integer", "format": f"int{bits}", **limit}, help_text, None)


def text(help_text: str = "", *, choices: tuple[str, ...] = (), form: str = "", default: str | None = None) -> Schema:
    more = {**({"enum": list(choices)} if choices else {}), **({"format": form} if form else {})}
    return _with({"type": "string", **more}, help_text, default)


def flag(help_text: str = "") -> Schema:
    return _with({"type": "boolean"}, help_text, None)


def time(help_text: str = "") -> Schema:
    return text(help_text, form="date-time")


def fields(help_text: str = "", /, *, required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    return _with({**schema, "required": list(required)} if required else schema, help_text, None)


def mapping(of: Schema, help_text: str = "") -> Schema:
    return _with({"type": "object", "additionalProperties": of}, help_text, None)


def anything(help_text: str = "") -> Schema:
    """An object with any fields: nothing is checked, nothing is dropped."""
    return _with({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, help_text, None)


def quantity(help_text: str = "") -> Schema:
    either = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
    return _with(either, help_text, None)


def _with(schema: Schema, help_text: str, default: str | None) -> Schema:
    described = {"description": help_text} if help_text else {}
    return {**described, **schema, **({} if default is None else {"default": default})}
