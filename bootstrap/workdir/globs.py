"""Patterns of paths, as in `.gitignore`: `*` and `?` stop at `/`, `**` does not."""

from __future__ import annotations

import re


def pattern(glob: str) -> re.Pattern[str]:
    """What matches a whole relative path. A glob with a `/` in it begins at the top, another one at any level."""
    text = glob.rstrip("/")
    return re.compile(("" if "/" in text else "(.*/)?") + _regex(text.lstrip("/")))


def _regex(glob: str) -> str:
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
