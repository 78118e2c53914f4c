"""No line is wider than 120 characters, in code and in docs, so that two files fit side by side on a screen."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from typing import TYPE_CHECKING

from checks.files import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from checks.files import File

LIMIT = 120
# Files whose lines are not ours to break, each with the reason.
EXCEPT = {
    "deploy/*": "`make manifests` writes it, and the API server's own format has no line breaks in descriptions",
    "*.json": "measured data, as the benchmarks wrote it",
    "*.patch": "quotes lines of other projects",
    "images/matrix.toml": "a row is one line, because TOML allows no line breaks in it",
    "tests/*/golden/*": "what other systems wrote, byte for byte",
    "LICENSE": "the text of the licence",
}
# Settings that their programs read as one line: the beginning of the line, by file.
ONE_LINE = {
    "images/kit/ssh/ssh.conf": "    UserKnownHostsFile ",
    "images/kit/ssh/sshd.conf": "AuthorizedKeysFile ",
}
# What a linter reads at the end of a line has to stay on that line.
PRAGMA = re.compile(r"\s+# (noqa|type: ignore|fmt:).*$")
# The part of a line that cannot be broken off: indentation, and the marker of a list, a quotation or a comment.
MARGIN = re.compile(r"\s*(?:(?:[-*>#]|//|\d+\.)\s+)*")


def check(file: File) -> Iterator[Problem]:
    """The lines that are too wide. A line without a space to break it at, such as a URL, may be wider."""
    if any(fnmatch(file.path, pattern) for pattern in EXCEPT):
        return
    unbroken = ONE_LINE.get(file.path, "\n")
    for number, line in enumerate(file.text.splitlines(), 1):
        shown = PRAGMA.sub("", line)
        if len(shown) > LIMIT and _can_be_broken(shown) and not line.startswith(unbroken):
            yield Problem(file.path, number, f"{len(shown)} characters, at most {LIMIT}")


def _can_be_broken(line: str) -> bool:
    margin = MARGIN.match(line)
    assert margin is not None  # it matches the empty text
    return " " in line[margin.end() : LIMIT + 1]
