"""What is wrong with a manifest: each problem with its path, and all of them at once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

Path = tuple[str | int, ...]
Level = Literal["error", "warning"]

MOST = 50  # errors, and as many warnings, that are named; a manifest may hold thousands of mistakes


def path_text(path: Path) -> str:
    """`spec.containers[0].image`; keys that hold dots or slashes get brackets, as kubectl writes them."""
    text = ""
    for part in path:
        text = below(text, part)
    return text


def below(path: str, part: str | int) -> str:
    """The text of a path that goes one step on."""
    if isinstance(part, int) or any(char in part for char in "./[] "):
        return f"{path}[{part}]"
    return f"{path}.{part}" if path else part


def nearest(path: str, known: Container[str]) -> str:
    """The path, or the nearest one above it that is known; empty if none is."""
    while path and path not in known:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return path


@dataclass(frozen=True)
class Problem:
    """One thing wrong. `reason` is the event's, for those problems that users of peers know by one."""

    path: str
    message: str
    line: int | None = None
    level: Level = "error"
    reason: str = ""

    @property
    def event(self) -> str:
        """The reason of the event that tells of it."""
        return self.reason or ("ValidationError" if self.level == "error" else "ValidationWarning")

    def text(self, source: str = "") -> str:
        """`job.yaml:12: spec.slotsPerWorker: must be >= 0, is -1`, without the parts that are not known."""
        where = f"{source}:{self.line}" if source and self.line else source
        return ": ".join(part for part in (where, self.path, self.message) if part)


class Problems:
    """Problems as they are found: the first of each level in full, and the number of the others."""

    def __init__(self) -> None:
        self._named: dict[Problem, None] = {}
        self._levels: Counter[Level] = Counter()
        self._more: Counter[Level] = Counter()

    def add(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            if self.full(problem.level):
                self.count(problem.level)
            elif problem not in self._named:
                self._named[problem] = None
                self._levels[problem.level] += 1

    def full(self, level: Level) -> bool:
        """Whether further problems of a level are only counted: then their texts are not needed."""
        return self._levels[level] >= MOST

    def count(self, level: Level) -> None:
        self._more[level] += 1

    @property
    def any_error(self) -> bool:
        return self._levels["error"] > 0

    def all(self) -> tuple[Problem, ...]:
        """In the order of the file, each once; what was only counted comes last."""
        named = sorted(self._named, key=lambda problem: problem.line or 0)
        return (*named, *(Problem("", f"and {more} more {level}s", None, level) for level, more in self._more.items()))


class ManifestError(UserError):
    """A manifest that cannot be used, with all that is wrong with it."""

    def __init__(self, problems: tuple[Problem, ...], source: str = "") -> None:
        self.problems = problems
        self.source = source
        super().__init__("\n".join(problem.text(source) for problem in map(marked, problems)))


def marked(problem: Problem) -> Problem:
    """Among errors a warning says what it is; it may well name their cause."""
    return replace(problem, message=f"warning: {problem.message}") if problem.level == "warning" else problem
