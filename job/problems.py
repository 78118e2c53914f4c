"""What is wrong with a manifest: each problem with its path, and all of them at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from mpiboot.job.errors import UserError

Path = tuple[str | int, ...]


def path_text(path: Path) -> str:
    """`spec.containers[0].image`; keys that hold dots or slashes get brackets, as kubectl writes them."""
    text = ""
    for part in path:
        if isinstance(part, int) or any(char in part for char in "./[] "):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


@dataclass(frozen=True)
class Problem:
    """One thing wrong. `reason` is the event's, for those problems that users of peers know by one."""

    path: str
    message: str
    line: int | None = None
    level: Literal["error", "warning"] = "error"
    reason: str = ""

    @property
    def event(self) -> str:
        """The reason of the event that tells of it."""
        return self.reason or ("ValidationError" if self.level == "error" else "ValidationWarning")

    def text(self, source: str = "") -> str:
        """`job.yaml:12: spec.slotsPerWorker: must be >= 0, is -1`, without the parts that are not known."""
        where = f"{source}:{self.line}" if source and self.line else source
        return ": ".join(part for part in (where, self.path, self.message) if part)


class ManifestError(UserError):
    """A manifest that cannot be used, with all that is wrong with it."""

    def __init__(self, problems: tuple[Problem, ...], source: str = "") -> None:
        self.problems = problems
        self.source = source
        super().__init__("\n".join(problem.text(source) for problem in map(marked, problems)))


def marked(problem: Problem) -> Problem:
    """Among errors a warning says what it is; it may well name their cause."""
    return replace(problem, message=f"warning: {problem.message}") if problem.level == "warning" else problem
