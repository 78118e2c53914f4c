"""Names for images. Docker's grammar decides which are valid; the result always has a tag."""

from __future__ import annotations

import re

from mpiboot.job.errors import UserError

# Docker's own grammar. A first part with a dot or a port is a registry; a colon after the last slash begins the tag.
_HOST = r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::\d+)?"
_PART = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(rf"(?P<name>(?:{_HOST}/)?{_PART}(?:/{_PART})*)(?::(?P<tag>\w[\w.-]{{0,127}}))?", re.ASCII)


class TagError(UserError):
    """An image cannot have this name."""


def tagged(reference: str) -> str:
    """`reference` with its tag, by default `latest`: for a name without a tag the engine would use all tags."""
    if "@" in reference:
        raise TagError(f"{reference} has a digest, and only a finished image has one; give a name like mine:v1")
    found = _REFERENCE.fullmatch(reference)
    if found is None:
        raise TagError(f"{reference} is not a name for an image; give a name like mine:v1 or host:5000/team/mine:v1")
    return reference if found["tag"] else f"{reference}:latest"
