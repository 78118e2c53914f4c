"""Commands that stand in a table, and are imported only when one is used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Mapping

Table = dict[str, tuple[str, str]]  # name -> where it lives (module:attribute), what it does or makes


class TableGroup(click.Group):
    """A group that knows its commands' names and purposes without importing them."""

    table: Mapping[str, tuple[str, str]] = {}
    section = "Commands"  # the heading of the list in the help

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        return list(self.table)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002 (click's signature)
        return self.command_of(name, found(self.table[name][0])) if name in self.table else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 (click's signature)
        with formatter.section(self.section):
            formatter.write_dl([(name, text) for name, (_, text) in self.table.items()])

    def command_of(self, name: str, entry: Any) -> click.Command:  # noqa: ANN401 (what a table names)
        """The command for what the table names: that itself, unless a group makes its commands."""
        assert isinstance(entry, click.Command), name
        return entry


def found(where: str) -> Any:  # noqa: ANN401 (whatever stands there)
    module, attribute = where.split(":")
    return getattr(importlib.import_module(module), attribute)
