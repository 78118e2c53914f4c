"""Text of others, made safe for a terminal and a log: images, containers and files may hold escape sequences."""

from __future__ import annotations

KEPT = "\n\t"


def printable(text: str) -> str:
    """The text with every control character, other than the ends of lines and tabs, written out: ESC is `\\x1b`."""
    return "".join(c if c.isprintable() or c in KEPT else c.encode("unicode_escape").decode() for c in text)
