"""Words that are out, by the table in words.md: in docs, comments, docstrings, texts of the code and names of tests."""

from __future__ import annotations

import io
import re
import token
import tokenize
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from checks.files import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from checks.files import File

TABLE = Path(__file__).with_name("words.md")
# This folder quotes the words, and so do its tests.
QUOTES = ("tools/checks/words.md", "tests/repo/test_checks.py")
PROSE = (".md", ".sh", ".toml", ".yaml", ".yml", ".c", ".conf", ".tpl", "Makefile", "Dockerfile")
INLINE_CODE = re.compile(r"`[^`\n]+`")
LEADER = re.compile(r"^\s*(?:#|//|[*>-])", re.MULTILINE)  # of a comment, a list or a quotation
OPENING = re.compile(r"""^[a-zA-Z]{0,2}["']+""")  # of a text in Python
MARKS = re.compile(r"""[#"']+(?=\s|\w|$)""")
# Python 3.12 and newer cut f-strings into parts; before, they are one token.
TEXTS = {tokenize.COMMENT, token.STRING, getattr(token, "FSTRING_MIDDLE", token.STRING)}


def check(file: File) -> Iterator[Problem]:
    """The places where a word stands that is out, each with what to write instead."""
    if file.path in QUOTES:
        return
    text = _prose(file)
    for pattern, instead in words():
        for found in pattern.finditer(text):
            if found[0].isupper():  # the name of a constant
                continue
            line = text.count("\n", 0, found.start()) + 1
            yield Problem(file.path, line, f'"{" ".join(found[0].split())}" is out; write: {instead}')


@cache
def words(table: Path = TABLE) -> list[tuple[re.Pattern[str], str]]:
    """Each row as a pattern and the plain words. Line breaks count as spaces, and "..." as one to four words."""
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", table.read_text(), re.MULTILINE)
    patterns = []
    for out, instead in rows[1:]:  # the first names the columns
        spellings = "|".join(r"\s+".join(map(_spelling, phrase.split())) for phrase in out.split(", "))
        patterns.append((re.compile(rf"(?<![\w'-])(?:{spellings})(?![\w-])", re.IGNORECASE), instead))
    return patterns


def _spelling(word: str) -> str:
    return r"[\w'-]+(?:\s+[\w'-]+){0,3}?" if word == "..." else re.escape(word)


def _prose(file: File) -> str:
    """The file with everything that is no prose made blank; each line keeps its number."""
    if file.path.endswith(".py"):
        return _python(file.text)
    if file.path.endswith(PROSE) or file.text.startswith("#!/"):
        return LEADER.sub(_blank, INLINE_CODE.sub(_blank, file.text))
    return ""


def _python(text: str) -> str:
    lines = [[" "] * len(line) for line in text.splitlines()]
    for each in tokenize.generate_tokens(io.StringIO(text).readline):
        shown = each.string
        if each.type == token.NAME and shown.startswith("test_"):
            shown = shown.replace("_", " ")
        elif each.type not in TEXTS or not re.search(r"\s", shown):  # a text of one word is data
            continue
        (row, column), shown = each.start, INLINE_CODE.sub(_blank, OPENING.sub(_blank, shown))
        for offset, line in enumerate(shown.splitlines()):
            start = column if offset == 0 else 0
            lines[row - 1 + offset][start : start + len(line)] = MARKS.sub(_blank, line)
    return "\n".join("".join(line) for line in lines)


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])
