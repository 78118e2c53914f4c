"""Reading one mapping of a manifest field by field: each value checked, each problem noted with its path and line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeVar

from mpiboot.job.problems import Problem, path_text
from mpiboot.job.values import Json, is_plain, kind
from mpiboot.job.words import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mpiboot.job.manifest import Manifest
    from mpiboot.job.problems import Path

Choice = TypeVar("Choice", bound=str)

LARGEST_INT32 = 2**31 - 1


class Fields:
    """A cursor on one mapping. Its readers return the value or the default and never raise: problems are collected.

    `null` and a field that is not there are the same, as in the API.
    """

    def __init__(self, manifest: Manifest, problems: list[Problem], path: Path = (), value: Json = None) -> None:
        self.manifest = manifest
        self.problems = problems
        self.path = path
        self.value: Mapping[str, Json] = value if isinstance(value, dict) else {}

    def note(self, name: str | None, message: str, level: Literal["error", "warning"] = "error") -> None:
        """Collect a problem of a field, or of the mapping itself."""
        path = self.path if name is None else (*self.path, name)
        self.problems.append(Problem(path_text(path), message, self.manifest.line(path), level))

    def get(self, name: str) -> Json:
        return self.value.get(name)

    def known(self, *names: str, elsewhere: Mapping[str, str] | None = None) -> None:
        """Warn of every field that is none of these. `elsewhere`: what other API versions call them, and what we do."""
        for name in self.value:
            if name not in names:
                moved = (elsewhere or {}).get(name)
                hint = f"; here it is {moved}" if moved else nearest(name, names)
                self.note(name, f"unknown field, ignored{hint}", "warning")

    def integer(self, name: str, *, minimum: int | None = None, largest: int = LARGEST_INT32) -> int | None:
        """A whole number, or None if it is not given or not good."""
        value = self.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            self.note(name, f"must be a whole number, is {kind(value)}")
        elif minimum is not None and value < minimum:
            self.note(name, f"must be >= {minimum}, is {value}")
        elif value > largest:
            self.note(name, f"must be <= {largest}, is {value}")
        else:
            return value
        return None

    def boolean(self, name: str, *, default: bool) -> bool:
        value = self.get(name)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        self.note(name, f"must be true or false, is {kind(value)}")
        return default

    def text(self, name: str, default: str | None = None) -> str | None:
        """Text; an empty one counts as not given."""
        value = self.get(name)
        if value is None or value == "":
            return default
        if isinstance(value, str):
            return value
        self.note(name, f"must be text, is {kind(value)}{'; put it in quotes' if is_plain(value) else ''}")
        return default

    def choice(self, name: str, choices: Iterable[Choice], default: Choice) -> Choice:
        """One of some words."""
        value = self.get(name)
        if value is None or value == "":
            return default
        for word in choices:
            if value == word:
                return word
        guess = nearest(value, choices) if isinstance(value, str) else ""
        self.note(name, f"must be one of {', '.join(choices)}; is {kind(value)}{guess}")
        return default

    def mapping(self, name: str) -> Fields:
        """A cursor on a mapping inside this one; an empty one if it is not there."""
        value = self.get(name)
        if value is not None and not isinstance(value, dict):
            self.note(name, f"must be a mapping, is {kind(value)}")
        return self.inner((name,), value)

    def inner(self, where: Path, value: Json = None) -> Fields:
        """A cursor further down."""
        return Fields(self.manifest, self.problems, (*self.path, *where), value)

    def texts(self, name: str) -> dict[str, str]:
        """A mapping of text to text, as labels are; anything else in it is left out with an error."""
        inner = self.mapping(name)
        return {key: text for key in inner.value if (text := inner.text(key, "")) is not None}
