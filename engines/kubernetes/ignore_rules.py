"""The rules of a `.mpibootignore`: which files of a directory stay here. The syntax is that of `.gitignore`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    only_directories, text = text.endswith("/"), text.rstrip("/")
    anchored = "/" in text
    return Rule(re.compile(("" if anchored else "(.*/)?") + _regex(text.lstrip("/"))), only_directories, brings_back)


def _regex(glob: str) -> str:
    """A glob as a regular expression: `*` and `?` stop at `/`, `**` does not."""
    found, at = "", 0
    while at < len(glob):
        if glob.startswith("**/", at):
            found, at = f"{found}(.*/)?", at + 3
        elif glob.startswith("**", at):
            found, at = f"{found}.*", at + 2
        elif (end := glob.find("]", at + 2)) > 0 and glob[at] == "[":
            inside = glob[at + 1 : end].replace("\\", "\\\\")
            found, at = f"{found}[{'^' + inside[1:] if inside[0] in '!^' else inside}]", end + 1
        else:
            found, at = found + {"*": "[^/]*", "?": "[^/]"}.get(glob[at], re.escape(glob[at])), at + 1
    return found
