"""Data as YAML text with comments at its fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mpiboot.job.problems import nearest, path_text
from mpiboot.job.read.yaml_lines import Documents
from mpiboot.job.yaml_text import dumped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mpiboot.job.values import Json


class Note(NamedTuple):
    """A comment on the field at a path, or on the nearest field above it."""

    path: str
    text: str


def commented(data: Json, notes: Iterable[Note]) -> str:
    """The YAML, each note on a line of its own above its field."""
    lines = dumped(data).splitlines()
    places = {path_text(path): line for _, found, _ in Documents("\n".join(lines), "") for path, line in found.items()}
    above: dict[int, list[str]] = {}
    for note in dict.fromkeys(notes):
        path = nearest(note.path, places)
        text = note.text if path == note.path else f"{note.path}: {note.text}"
        above.setdefault(places[path], []).append(text)
    result: list[str] = []
    for number, line in enumerate(lines, 1):
        indent = line[: len(line) - len(line.lstrip())]
        result += [f"{indent}# {text}" for text in above.get(number, ())]
        result.append(line)
    return "\n".join(result) + "\n"
