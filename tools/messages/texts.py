"""The texts in a Python file that a person may read when the program runs: all prose but docstrings and comments."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# What has two words and is no prose: programs, patterns and markup, by what stands in them.
CODE = re.compile(
    r"""\$[({\w?#@]|/dev/|\\[.(\[dswS]|&&|\|\||^\#!|^<|="|\bcommand\ -v\b|\(\?|%\(|[{}]\{|;\s*$|\\t|\r
    |^(awk|cat|du|echo|env|exec|find|grep|id|import|ldd|mkdir|mpirun|python3?|readlink|sh|ssh|stat|test|until)
        \ [-/{\w.]+[}\w:]*(\ |$)|^(echo|lacks\(\))\ """,
    re.VERBOSE,
)
FILLED_IN = re.compile(r"\{[^{}]*\}|%(?:s|d|\.\df)")
# Calls that are left out of the name of what is filled in.
PASSING = {"int", "len", "list", "map", "repr", "sorted", "str", "type"}
# Calls whose texts no person reads.
NOT_READ = {"compile", "split", "search", "match", "fullmatch", "findall", "sub", "Literal", "cast", "debug"}


def texts(source: str) -> Iterator[str]:
    """Every such text in the order of the file, once; what is filled in stands as {name}."""
    found: dict[tuple[int, int], str] = {}
    _collect(ast.parse(source), source.splitlines(), found)
    yield from dict.fromkeys(found[place] for place in sorted(found))


def is_prose(text: str) -> bool:
    """Two words or more, or one beside what is filled in; and no program, pattern or markup."""
    bare = FILLED_IN.sub(" ", text)
    words = re.findall(r"(?<![\w/.-])[A-Za-z][a-z']+(?![\w/=-])", bare)
    return len(words) + (bare != text) > 1 and bool(words) and " " in text.strip() and not CODE.search(text.strip())


def _collect(node: ast.AST, lines: list[str], found: dict[tuple[int, int], str]) -> None:
    if isinstance(node, ast.Call) and _name(node.func) in NOT_READ:
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):  # a docstring
        return
    if isinstance(node, (ast.Constant, ast.JoinedStr)):
        text = _text(node)
        if is_prose(text) and lines[node.lineno - 1][node.col_offset] not in "rR":  # a raw text is a pattern
            found[node.lineno, node.col_offset] = " ".join(text.split())
    if isinstance(node, ast.Call) and node.args and "%" in _text(node.args[0]):  # a line for a log
        line, *values = node.args
        names = (f"{{{_name(value)}}}" for value in values)
        text = FILLED_IN.sub(lambda percent: next(names, percent[0]), _text(line))
        if is_prose(text):
            found[line.lineno, line.col_offset] = " ".join(text.split())
        for value in values:
            _collect(value, lines, found)
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(node, ast.JoinedStr) and isinstance(child, ast.Constant):
            continue
        if child is getattr(node, "annotation", None) or child is getattr(node, "returns", None):
            continue
        _collect(child, lines, found)


def _text(node: ast.AST) -> str:
    """What the text says, with the names of what is filled in; nothing for what is no text."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    parts = node.values if isinstance(node, ast.JoinedStr) else []
    return "".join(_text(part) if isinstance(part, ast.Constant) else f"{{{_name(part)}}}" for part in parts)


def _name(node: ast.AST) -> str:
    """A short name for an expression: the last name in it that says what it is."""
    match node:
        case ast.Name():
            return node.id.lstrip("_")
        case ast.Attribute(attr="__name__"):
            return _name(node.value)
        case ast.Attribute():
            return node.attr.lstrip("_")
        case ast.FormattedValue() | ast.Subscript() | ast.Starred() | ast.Await():
            return _name(node.value)
        case ast.Call(func=ast.Attribute(attr="join"), args=[joined, *_]):
            return _name(joined)
        case ast.Call(func=ast.Attribute(attr="replace" | "strip" | "decode" | "removeprefix" | "get", value=value)):
            return _name(value)
        case ast.Call(func=ast.Name(id=name), args=[*_, last]) if name in PASSING:
            return _name(last)
        case ast.Call():
            return _name(node.func)
        case ast.GeneratorExp() | ast.ListComp():
            return _name(node.elt)
        case ast.IfExp():
            return _name(node.body) if not isinstance(node.body, (ast.Constant, ast.JoinedStr)) else "..."
        case ast.BoolOp() | ast.BinOp():
            return _name(node.values[0] if isinstance(node, ast.BoolOp) else node.left)
    return "..."
