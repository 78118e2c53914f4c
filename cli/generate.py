"""`mpiboot generate`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import click

from mpiboot.cli.lazy_commands import LazyGroup, Table
from mpiboot.job.errors import UserError
from mpiboot.job.suggestions import did_you_mean

if TYPE_CHECKING:
    from mpiboot.job.prototypes.prototype import Manifests, Prototype

# name -> where it lives, what it makes. Only the one that is asked for is imported.
PROTOTYPES: Table = {
    "mpi-operator": ("mpiboot.controller.install.prototype:OPERATOR", "The operator's installation."),
    "mpi-job-simple": ("mpiboot.job.prototypes.mpi_job:SIMPLE", "An MPIJob for a number of GPUs."),
    "mpi-job-custom": ("mpiboot.job.prototypes.mpi_job:CUSTOM", "An MPIJob of so many workers with GPUs."),
    "openmpi": ("mpiboot.job.prototypes.openmpi:OPENMPI", "Plain pods that need no operator."),
}
EXIT_CODES = "Exit codes: 0 printed; 2 a parameter is wrong, and nothing is printed."


class OneLine(click.Command):
    """A command that reports each mistake in one line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            flags = [flag for option in self.params for flag in option.opts if flag.startswith("--")]
            word = error.option_name
            raise UserError(f"{self.name} has no parameter {word}; {near(word, flags)}") from None
        except click.UsageError as error:
            raise UserError(f"{self.name}: {error.format_message()}") from None


class Prototypes(LazyGroup):
    """A command for each prototype, with an option for each of its parameters."""

    sections: ClassVar = {"Prototypes": PROTOTYPES}

    def command_of(self, name: str, entry: Prototype) -> click.Command:
        return command(name, entry)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in PROTOTYPES:
            unknown(args[0])
        return super().resolve_command(ctx, args)


@click.group(cls=Prototypes, subcommand_metavar="PROTOTYPE NAME [--PARAMETER VALUE]...")
def generate() -> None:
    """Print the manifests of a prototype, with the parameters of its ksonnet package.

    Example: mpiboot generate mpi-job-simple NAME --gpus 16.

    Pipe them to `kubectl apply -f -`, or to `mpiboot run -f -`. Exit codes: 0 printed; 2 a prototype or a parameter is
    wrong, and nothing is printed.
    """


def command(name: str, prototype: Prototype) -> click.Command:
    """The command that prints this prototype."""
    parameters: list[click.Parameter] = [
        click.Argument(["component"], required=False, metavar="NAME"),
        *(
            click.Option([f"--{each.name}", each.name], default=each.default, help=each.help, metavar="VALUE",
                         show_default=each.default is not None)
            for each in prototype.parameters
        ),
        click.Option(["--name", "name"], metavar="NAME", help="The name of the objects, if it is not NAME."),
        click.Option(["-n", "--namespace", "namespace"], metavar="NAME", default="",
                     help="Namespace of the objects.  [default: kubectl's own, else default]"),
        click.Option(["-o", "--output", "form"], type=click.Choice(["yaml", "json"]), default="yaml",
                     show_default=True, help="Form of the output."),
        click.Option(["--describe", "describe"], is_flag=True, help="Print the parameters and their defaults."),
    ]  # fmt: skip
    return OneLine(name, params=parameters, help=f"{prototype.summary}\n\n{EXIT_CODES}",
                   callback=lambda **given: run(prototype, **given))  # fmt: skip


def run(
    prototype: Prototype, *, component: str | None, name: str | None, namespace: str, form: str, describe: bool,
    **values: str | None,
) -> int:  # fmt: skip
    if describe:
        print(description(prototype), end="")
        return 0
    if not component:
        raise UserError(f"{prototype.name} needs a name: mpiboot generate {prototype.name} NAME [--PARAMETER VALUE]...")
    from mpiboot.job.prototypes.parameter_values import ABSENT, ParameterValues

    texts = {key: ABSENT if value is None else value for key, value in values.items()}
    made = prototype.make(ParameterValues(name or component, namespace, texts))
    # As one text: an error before this line has printed nothing.
    text = as_yaml(made) if form == "yaml" else as_json(made)
    print(text, end="")
    if form == "json":
        for note in made.notes:
            print(f"mpiboot: {note}", file=sys.stderr)
    return 0


def description(prototype: Prototype) -> str:
    """A block for each parameter."""
    lines = [f"{prototype.name}: {prototype.summary}", ""]
    for each in prototype.parameters:
        default = "must be given" if each.default is None else f"default {each.default}"
        lines += [f"--{each.name}  ({default})", f"    {each.help}"]
    return "\n".join(lines) + "\n"


def as_yaml(made: Manifests) -> str:
    """The objects as documents, after comments with notes about them."""
    from mpiboot.job.yaml_text import dumped

    return "".join(f"# {note}\n" for note in made.notes) + dumped(*made.objects)


def as_json(made: Manifests) -> str:
    """One object, or a List of them."""
    many: Any = {"apiVersion": "v1", "kind": "List", "items": list(made.objects)}
    return json.dumps(made.objects[0] if len(made.objects) == 1 else many, indent=2) + "\n"


def unknown(name: str) -> NoReturn:
    raise UserError(f"there is no prototype {name!r}; {near(name, list(PROTOTYPES))}")


def near(word: str, known: list[str]) -> str:
    """The names nearest to a word; all of them if none is near."""
    begin = [name for name in known if name.lower().startswith(word.lower())]
    hint = f"did you mean {' or '.join(begin)}?" if begin else did_you_mean(word, known)
    return hint or f"there are {', '.join(known)}"
