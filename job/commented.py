"""Data as YAML text with comments at its fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mpiboot.job.problems import path_text
from mpiboot.job.yaml_lines import Documents, scalar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mpiboot.job.values import Json


class Note(NamedTuple):
    """A comment on what stands at a path; on what is above it, if nothing stands there."""

    path: str
    text: str


def commented(data: Json, notes: Iterable[Note]) -> str:
    """The YAML, each note on a line of its own above its field."""
    lines = dumped(data).splitlines()
    places = {path_text(path): line for _, found, _ in Documents("\n".join(lines), "") for path, line in found.items()}
    above: dict[int, list[str]] = {}
    for note in dict.fromkeys(notes):
        path = note.path
        while path and path not in places:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        text = note.text if path == note.path else f"{note.path}: {note.text}"
        above.setdefault(places[path], []).append(text)
    result: list[str] = []
    for number, line in enumerate(lines, 1):
        indent = line[: len(line) - len(line.lstrip())]
        result += [f"{indent}# {text}" for text in above.get(number, ())]
        result.append(line)
    return "\n".join(result) + "\n"


def dumped(data: Json) -> str:
    """The YAML, in block style, text in quotes wherever a reader could take it for something else."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Json) -> bool:  # noqa: ARG002 - its base's signature
            return True

    def text(dumper: Dumper, value: str) -> yaml.Node:
        style = "|" if "\n" in value else "'" if scalar(value) != value else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style)

    Dumper.add_representer(str, text)
    result: str = yaml.dump(
        data, Dumper=Dumper, sort_keys=False, default_flow_style=False, allow_unicode=True, width=110
    )
    return result
