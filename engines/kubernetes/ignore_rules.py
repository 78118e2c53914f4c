"""The rules of a `.mpibootignore`: which files of a directory stay here. The syntax is that of `.gitignore`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpiboot.bootstrap.workdir import globs

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable

FILE = ".mpibootignore"
# No program needs them there. A line such as `!.git/` brings one back.
ALWAYS = (".git/", ".hg/", ".svn/", ".venv/", "__pycache__/", ".DS_Store")


@dataclass(frozen=True)
class Rule:
    """One line: what it matches, and whether it brings back what an earlier one left out."""

    pattern: re.Pattern[str]
    only_directories: bool
    brings_back: bool


class IgnoreRules:
    """The rules, in their order. The last one that matches counts."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._rules = [rule for line in (*ALWAYS, *lines) if (rule := _rule(line))]

    def leaves_out(self, path: str, *, directory: bool) -> bool:
        """Whether a path stays here. It is relative, with `/` between its parts."""
        for rule in reversed(self._rules):
            if (directory or not rule.only_directories) and rule.pattern.fullmatch(path):
                return not rule.brings_back
        return False


def _rule(line: str) -> Rule | None:
    text = line.rstrip()
    if not text or text.startswith("#"):
        return None
    brings_back = text.startswith("!")
    text = text[1:] if brings_back else text.removeprefix("\\")
    only_directories = text.endswith("/")
    return Rule(globs.pattern(text), only_directories, brings_back)
