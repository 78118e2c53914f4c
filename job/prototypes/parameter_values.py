"""The values of a prototype's parameters, each read as the type that it must have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiboot.job.errors import UserError
from mpiboot.job.names import label_fault
from mpiboot.job.values import kind

if TYPE_CHECKING:
    from collections.abc import Mapping

ABSENT = "null"
MOST_DIGITS = 18  # of 64 bits; users of OpenShift have ten digits, and `int` raises for 4,301


@dataclass(frozen=True)
class ParameterValues:
    """The component's name, the namespace ("": not given), and the text of every parameter."""

    name: str
    namespace: str
    values: Mapping[str, str]

    def __post_init__(self) -> None:
        for text, what, digit in ((self.name, "NAME", False), (self.namespace or "default", "--namespace", True)):
            if fault := label_fault(text, may_start_with_digit=digit):
                raise UserError(f"{what} {text!r} {fault}")

    def text(self, parameter: str) -> str | None:
        """The text; None where it is absent."""
        value = self.values[parameter].strip()
        return None if value in ("", ABSENT) else value

    def required(self, parameter: str, why: str) -> str:
        value = self.text(parameter)
        if value is None:
            raise UserError(f"--{parameter} must be given: {why}")
        return value

    def exact(self, parameter: str) -> str | None:
        """The text as it was given, with all blanks and quotes."""
        return None if self.text(parameter) is None else self.values[parameter]

    def commas(self, parameter: str) -> list[str]:
        """The parts between commas; none where it is absent."""
        value = self.text(parameter)
        return [] if value is None else [part.strip() for part in value.split(",")]

    def names(self, parameter: str) -> list[str]:
        """The parts between commas; an empty part is an error."""
        parts = self.commas(parameter)
        if "" in parts:
            raise UserError(f"--{parameter}: a part between the commas is empty in {self.values[parameter]!r}")
        return parts

    def whole(self, parameter: str, least: int = 0) -> int | None:
        value = self.text(parameter)
        return None if value is None else whole(value, f"--{parameter}", least)

    def count(self, parameter: str, least: int = 0, most: int | None = None) -> int:
        """A whole number that cannot be absent."""
        value = self.text(parameter)
        number = whole(ABSENT if value is None else value, f"--{parameter}", least)
        if most is not None and number > most:
            raise UserError(f"--{parameter} must be at most {most}, is {number}")
        return number

    def pairs(self, parameter: str) -> dict[str, str]:
        """`a=1,b=2`."""
        found: dict[str, str] = {}
        for part in self.names(parameter):
            key, equals, value = part.partition("=")
            if not equals or not key.strip():
                raise UserError(f"--{parameter}: {part!r} must be NAME=VALUE")
            if key.strip() in found:
                raise UserError(f"--{parameter}: {key.strip()!r} is given twice")
            found[key.strip()] = value.strip()
        return found

    def both(self, first: str, second: str) -> tuple[str, str] | None:
        """Two parameters that must be given together."""
        values = self.text(first), self.text(second)
        if values[0] is not None and values[1] is not None:
            return values[0], values[1]
        if values != (None, None):
            there, lacking = (first, second) if values[0] is not None else (second, first)
            raise UserError(f"--{there} needs --{lacking} beside it: give both or neither")
        return None

    def chosen(self, parameter: str, choices: tuple[str, ...]) -> str:
        value = self.text(parameter) or ABSENT
        if value not in choices:
            raise UserError(f"--{parameter} must be one of {', '.join(choices)}, is {value!r}")
        return value

    def switch(self, parameter: str) -> bool:
        return self.chosen(parameter, ("true", "false")) == "true"

    def mappings(self, parameter: str) -> list[dict[str, Any]]:
        """A list of mappings, written as JSON or YAML."""
        from mpiboot.job.read.yaml_lines import Documents

        documents = [data for data, _, _ in Documents(self.text(parameter) or "[]", f"--{parameter}")]
        items = documents[0] if len(documents) == 1 else documents
        if not isinstance(items, list):
            raise UserError(f"--{parameter} must be a list such as '[{{\"name\": ...}}]', is {kind(items)}")
        for item in items:
            if not isinstance(item, dict) or not isinstance(item.get("name"), str):
                raise UserError(f"--{parameter}: each item must be a mapping with a name, one is {kind(item)}")
        return items


def whole(value: str, what: str, least: int) -> int:
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS):
        raise UserError(f"{what} must be a whole number, is {kind(value)}")
    if int(value) < least:
        raise UserError(f"{what} must be at least {least}, is {value}")
    return int(value)
