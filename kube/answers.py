"""The text of an answer to its JSON object. Objects in it may hold anything that their users wrote."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

DEEPEST = 200  # levels that are kept; objects of Kubernetes have 20, and Python's parser raises near 1,000

_TOKEN = re.compile(rb'[{}\[\]]|"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


class NotJsonError(Exception):
    """The answer is no JSON object: a proxy may have sent it."""


async def parsed(text: bytes) -> dict[str, Any]:
    """The object in an answer. What is nested too deeply in it is null instead: see `pruned`."""
    try:
        try:
            found = json.loads(text)
        except RecursionError:
            found = json.loads(await asyncio.to_thread(pruned, text))
    except ValueError as error:
        raise NotJsonError(f"no JSON but {text[:80]!r}: {error}") from None
    if not isinstance(found, dict):
        raise NotJsonError(f"no JSON object but {text[:80]!r}")
    return found


def pruned(text: bytes) -> bytes:
    """JSON with null in place of every list and mapping below the deepest level that is kept. Takes linear time.

    An API server keeps 10,000 levels of an object. One object like that must not hide all others in a list.
    """
    kept: list[bytes] = []
    depth = begin = 0
    for token in _TOKEN.finditer(text):
        sign = token[0][:1]
        if sign in b"{[":
            depth += 1
            if depth == DEEPEST + 1:
                kept += [text[begin : token.start()], b"null"]
        elif sign in b"}]":
            if depth == DEEPEST + 1:
                begin = token.end()
            depth -= 1
    return b"".join([*kept, text[begin:]])
