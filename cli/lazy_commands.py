"""Groups of commands that are imported only when one of them is used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, ClassVar

import click

from mpiboot.job.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

Table = dict[str, tuple[str, str]]  # name -> where it lives (module:attribute), what it does or makes


class Group(click.Group):
    """A group that prints its help, the list of its commands, when no command is given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)


class LazyGroup(Group):
    """A group that knows the names and purposes of its commands without importing them."""

    sections: ClassVar[Mapping[str, Table]] = {}  # heading in the help -> commands

    @property
    def table(self) -> Table:
        return {name: row for table in self.sections.values() for name, row in table.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        return list(self.table)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002 (click's signature)
        return self.command_of(name, _attribute(self.table[name][0])) if name in self.table else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.table:
            raise click.UsageError(f"there is no command {args[0]!r}; {self.suggestion(args[0])}", ctx)
        return super().resolve_command(ctx, args)

    def suggestion(self, word: str) -> str:
        """What a user may have meant by a word that is no command."""
        return did_you_mean(word, self.table) or f"there are {', '.join(self.table)}"

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 (click's signature)
        width = max(len(name) for name in self.table)
        for heading, table in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl([(f"{name:<{width}}", text) for name, (_, text) in table.items()])

    def command_of(self, name: str, entry: Any) -> click.Command:  # noqa: ANN401 (what a table names)
        """The command for an attribute that a table names: that itself, unless a group makes its commands."""
        assert isinstance(entry, click.Command), name
        return entry


def _attribute(where: str) -> Any:  # noqa: ANN401 (the attribute may be anything)
    module, name = where.split(":")
    return getattr(importlib.import_module(module), name)
