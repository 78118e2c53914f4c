"""Plain data: what JSON can hold, and what is in it."""

from __future__ import annotations

from typing import Any

# A dict with text keys, a list, text, a number, a truth value or None. Spelled out as a union, every reader of a
# template would have to narrow at each step what the API server narrows anyway.
Json = Any

LONGEST_TEXT = 200  # characters of a value that a message shows
LONGEST_NUMBER = 9  # digits; `int` raises for 4,301, and every number of a job fits into 32 bits


def kind(value: Json) -> str:
    """A value as error messages show it: `a list`, `'two'`, `3`."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "not given"
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return f"{value[:LONGEST_TEXT]!r}..."
    return str(value).lower() if isinstance(value, bool) else repr(value)


def natural(text: str) -> int | None:
    """The whole number that a text writes in plain digits, or None. More than nine digits are no number of anything."""
    return int(text) if len(text) <= LONGEST_NUMBER and text.isascii() and text.isdigit() else None


def exit_codes(text: str) -> frozenset[int] | None:
    """The exit codes in a text like `2,64-78`; None if it names others than 1 to 255."""
    found: set[int] = set()
    for part in text.replace(",", " ").split():
        first, dash, last = part.partition("-")
        low, high = natural(first), natural(last if dash else first)
        if low is None or high is None or not 1 <= low <= high <= 255:
            return None
        found.update(range(low, high + 1))
    return frozenset(found)


def is_plain(value: Json) -> bool:
    """Whether a value is neither a list nor a mapping."""
    return not isinstance(value, (dict, list))


def as_text(value: Json) -> Json:
    """The text that was meant where quotes are missing: `2`, `true`. Text, lists and mappings stay as they are."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (int, float)) else value
