"""The stages of our Dockerfile. A row of the table of images names the stages that make its image."""

from __future__ import annotations

import re
from pathlib import Path

DOCKERFILE = Path(__file__).with_name("Dockerfile")

_FROM = re.compile(r"FROM \S+ AS (?P<stage>\S+)")


def stages(dockerfile: str) -> dict[str, list[str]]:
    """The lines of each stage, without its FROM and without the headings between groups."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in dockerfile.splitlines():
        if match := _FROM.match(line):
            current = found.setdefault(match["stage"], [])
        elif line.strip() and not line.startswith("# ----"):
            current.append(line)
    return found
