"""YAML text to plain JSON-able data, together with the line of every path in it.

The data is what kubectl would send: no dates, no base-60 numbers, text keys only. What kubectl refuses or silently
drops (a key given twice, a tab) is an error with its line.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from mpiboot.job.problems import ManifestError, Path, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    import yaml

    from mpiboot.job.values import Json

Lines = dict[Path, int]

# Aliases can make a small file expand without end; no real manifest has so many values.
MOST_NODES = 200_000
# Characters of a whole number: Python cannot show one of 4,300 digits, and hexadecimal ones have no such limit.
LONGEST_INT = 400

PLAIN = "plain"  # our tag for scalars without quotes and tag
STANDARD = "tag:yaml.org,2002:"

NULL = re.compile(r"~|null|Null|NULL|")
BOOL = re.compile(r"(?P<yes>true|True|TRUE|yes|Yes|YES|on|On|ON)|false|False|FALSE|no|No|NO|off|Off|OFF")
INT = re.compile(r"[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*\.[0-9_]*|[0-9][0-9_]*(?=[eE]))([eE][-+]?[0-9]+)?")


def scalar(text: str) -> Json:
    """The value of an unquoted scalar."""
    if NULL.fullmatch(text):
        return None
    if match := BOOL.fullmatch(text):
        return match["yes"] is not None
    if len(text) <= LONGEST_INT and INT.fullmatch(text):
        with suppress(ValueError):  # Python's limit on digits; or `0x_`
            # `0444` is octal, as file modes in manifests are meant to be.
            return int(re.sub(r"^([-+]?)0([0-7])", r"\g<1>0o\2", text.replace("_", "")), 0)
    if FLOAT.fullmatch(text):
        return float(text.replace("_", ""))
    return text


class Documents:
    """The documents of one YAML text, each as its data and its lines."""

    def __init__(self, text: str, source: str) -> None:
        import yaml

        class Loader(yaml.SafeLoader):
            """YAML without PyYAML's own types for plain scalars (dates, 1:30 as 90): see `scalar`."""

            yaml_implicit_resolvers = {None: [(PLAIN, re.compile(""))]}  # noqa: RUF012 - as its base has it

        self.loader = Loader
        self.yaml = yaml
        self.source = source
        self.text = self._without_json_tabs(text)
        self.nodes = 0

    @staticmethod
    def _without_json_tabs(text: str) -> str:
        """JSON may be indented by tabs, which YAML refuses; JSON's strings hold none, so spaces do as well."""
        if "\t" in text and text.lstrip().startswith("{"):
            try:
                json.loads(text)
            except ValueError:
                return text
            return text.replace("\t", " ")
        return text

    def __iter__(self) -> Iterator[tuple[Json, Lines, int]]:
        """Data, lines and first line of each document that is not empty."""
        try:
            for node in list(self.yaml.compose_all(self.text, self.loader)):
                lines: Lines = {}
                data = self._value(node, (), lines, ())
                if data is not None:
                    yield data, lines, node.start_mark.line + 1
        except self.yaml.MarkedYAMLError as error:
            self._not_yaml(error)
        except self.yaml.YAMLError as error:
            self._fail(f"not YAML: {str(error).splitlines()[0]}", None)
        except RecursionError:
            self._fail("nested too deeply for a manifest", None)

    def _not_yaml(self, error: yaml.MarkedYAMLError) -> NoReturn:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        if "'\\t'" in (error.problem or ""):
            self._fail("a tab cannot indent or separate in YAML: use spaces", line)
        parts = (part for part in (error.context, error.problem) if part)
        self._fail(f"not YAML: {', '.join(parts)}", line)

    def _fail(self, message: str, line: int | None, path: str = "") -> NoReturn:
        raise ManifestError((Problem(path, message, line),), self.source) from None

    def _value(self, node: yaml.Node, path: Path, lines: Lines, above: tuple[int, ...]) -> Json:
        line = node.start_mark.line + 1
        self._count(line)
        if id(node) in above:
            self._fail("an alias cannot stand inside its own anchor", line)
        lines.setdefault(path, line)
        above = (*above, id(node))
        if isinstance(node, self.yaml.MappingNode):
            return self._mapping(node, path, lines, above)
        if isinstance(node, self.yaml.SequenceNode):
            return [self._value(item, (*path, index), lines, above) for index, item in enumerate(node.value)]
        assert isinstance(node, self.yaml.ScalarNode)
        return self._scalar(node, line)

    def _count(self, line: int) -> None:
        self.nodes += 1
        if self.nodes > MOST_NODES:
            self._fail(f"too large: more than {MOST_NODES} values, aliases expanded", line)

    def _scalar(self, node: yaml.ScalarNode, line: int) -> Json:
        if node.tag == f"{STANDARD}str":  # quoted, or tagged so
            return node.value
        if node.tag != PLAIN and not node.tag.startswith(STANDARD):
            self._fail(f"the tag {node.tag} has no meaning in a manifest", line)
        return scalar(node.value)

    def _mapping(self, node: yaml.MappingNode, path: Path, lines: Lines, above: tuple[int, ...]) -> dict[str, Json]:
        result: dict[str, Json] = {}
        given: dict[str, int] = {}
        merged: list[yaml.Node] = []
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, self.yaml.ScalarNode):
                self._fail("a key must be text", line)
            if key_node.value == "<<" and key_node.style is None:
                merged += value_node.value if isinstance(value_node, self.yaml.SequenceNode) else [value_node]
                continue
            key = key_node.value
            if key in given:
                self._fail(f"the key {key!r} is given twice, first in line {given[key]}", line)
            given[key] = line
            lines[*path, key] = line
            result[key] = self._value(value_node, (*path, key), lines, above)
        for source in merged:  # own keys win over merged ones, earlier merges over later ones
            self._count(source.start_mark.line + 1)  # a merge of empty mappings holds no value and takes its time
            if not isinstance(source, self.yaml.MappingNode):
                self._fail("'<<' merges mappings only", source.start_mark.line + 1)
            if id(source) in above:
                self._fail("an alias cannot stand inside its own anchor", source.start_mark.line + 1)
            extra: Lines = {}
            for key, value in self._mapping(source, path, extra, (*above, id(source))).items():
                result.setdefault(key, value)
            for where, at in extra.items():
                lines.setdefault(where, at)
        return result
