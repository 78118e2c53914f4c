"""Plain data: what JSON can hold, and what is in it."""

from __future__ import annotations

from typing import Any

# A dict with text keys, a list, text, a number, a truth value or None. Spelled out as a union, every reader of a
# template would have to narrow at each step what the API server narrows anyway.
Json = Any


def kind(value: Json) -> str:
    """What a value is, in the words of an error message: `a list`, `'two'`, `3`."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "not given"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def is_plain(value: Json) -> bool:
    """Whether a value is neither a list nor a mapping."""
    return not isinstance(value, (dict, list))


def as_text(value: Json) -> Json:
    """What a user means who forgot the quotes: `2`, `true`. Text, lists and mappings stay what they are."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (int, float)) else value
