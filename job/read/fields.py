"""Reads one mapping of a manifest field by field; checks each value, notes each problem with its path and line."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from mpiboot.job.problems import Problem, path_text
from mpiboot.job.suggestions import nearest
from mpiboot.job.values import Json, is_plain, kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mpiboot.job.problems import Level, Path, Problems
    from mpiboot.job.read.manifest import Manifest

Choice = TypeVar("Choice", bound=str)

LARGEST_INT32 = 2**31 - 1

# How large a manifest may be. A template is copied into every pod, and an operator reads those of all users.
MOST_TEXT = 256 * 1024  # characters; Linux starts no program with a longer word than 128 KiB
MOST_VALUES = 20_000
DEEPEST = 100  # levels; a pod template has 12

MOST_WORKERS = 5000  # an installation may set another number, up to
MOST_WORKERS_EVER = 100_000  # which the CRD refuses; a Kubernetes cluster has at most 150,000 pods
MOST_SLOTS = 65_535


class Fields:
    """A cursor on one mapping. Its readers return the value or the default and never raise: problems are collected.

    `null` and a field that is not there are the same, as in the API.
    """

    def __init__(self, manifest: Manifest, problems: Problems, path: Path = (), value: Json = None) -> None:
        self.manifest = manifest
        self.problems = problems
        self.path = path
        self.value: Mapping[str, Json] = value if isinstance(value, dict) else {}

    def note(self, name: str | None, message: str, level: Level = "error") -> None:
        """Collect a problem of a field, or of the mapping itself."""
        if self.problems.full(level):
            self.problems.count(level)
            return
        path = self.path if name is None else (*self.path, name)
        self.problems.add([Problem(path_text(path), message, self.manifest.line(path), level)])

    def get(self, name: str) -> Json:
        return self.value.get(name)

    def known(self, *names: str, elsewhere: Mapping[str, str] | None = None) -> None:
        """Warn of every field that is none of these. `elsewhere`: what other API versions call them, and what we do."""
        for name in self.value:
            if name not in names:
                if self.problems.full("warning"):  # what was meant takes 0.1 ms a word to find
                    self.problems.count("warning")
                    continue
                moved = (elsewhere or {}).get(name)
                hint = f"; in this version it is {moved}" if moved else nearest(name, names)
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


def size_fault(value: Json) -> str | None:
    """Why something is too large to be read, or None. Ends with the first limit that is reached."""
    level, text, values = [value], 0, 0
    for _ in range(DEEPEST):
        below: list[Json] = []
        for each in level:
            if isinstance(each, str):
                text += len(each)
            elif isinstance(each, dict):
                text += sum(map(len, map(str, each)))
                below += each.values()
            elif isinstance(each, list):
                below += each
        values += len(below)
        if text > MOST_TEXT:
            return f"must hold at most {MOST_TEXT // 1024} KiB of text"
        if values > MOST_VALUES:
            return f"must hold at most {MOST_VALUES} values"
        if not below:
            return None
        level = below
    return f"must not be nested deeper than {DEEPEST} levels"
