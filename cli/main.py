"""The root of the command line. Each command is imported only when it is asked for."""

from __future__ import annotations

import sys

import click

from mpiboot import __version__
from mpiboot.cli.table import Table, TableGroup
from mpiboot.job.errors import UserError

# name -> where it lives, what it does. The table keeps `mpiboot --help` from importing docker and the rest.
COMMANDS: Table = {
    "run": ("mpiboot.cli.run:run", "Run an MPI job on this machine."),
    "ps": ("mpiboot.cli.jobs:ps", "List the jobs on this machine."),
    "logs": ("mpiboot.cli.jobs:logs", "Print the output of a job."),
    "scale": ("mpiboot.cli.scale:scale", "Give a running elastic job more or fewer workers."),
    "delete": ("mpiboot.cli.jobs:delete", "End a job and remove all that belongs to it."),
    "generate": ("mpiboot.cli.generate:generate", "Print the manifests of a prototype."),
    "lint": ("mpiboot.cli.lint:lint", "Say what is wrong or outdated in a manifest."),
    "convert": ("mpiboot.cli.convert:convert", "Print a manifest of an older version as v2beta1."),
    "status": ("mpiboot.cli.status:status", "Show how a job of a cluster stands."),
    "operator": ("mpiboot.cli.operator:operator", "Look after the MPIJobs of a Kubernetes cluster."),
    "images": ("mpiboot.cli.images:images", "Build, list and check MPI images."),
    "launch": ("mpiboot.cli.launch:launch", "Wait for the workers, then run a command (in a launcher)."),
    "worker": ("mpiboot.cli.launch:worker", "Serve SSH to the launcher (in a worker)."),
    "wait": ("mpiboot.cli.launch:wait", "Wait for the workers and do nothing else."),
    "hosts": ("mpiboot.cli.launch:hosts", "Print the hosts that are ready, with their slots."),
}


class Commands(TableGroup):
    """All commands of `mpiboot`."""

    table = COMMANDS


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mpiboot")
def root() -> None:
    """Run MPI programs on many machines, from a laptop to a Kubernetes cluster.

    Exit codes: 0 done, 2 the input is wrong; `mpiboot COMMAND --help` lists those of a command.
    """


def main(argv: list[str]) -> int:
    """The exit code of the command line `argv`."""
    try:
        result = root.main(args=argv, prog_name="mpiboot", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return 130
    except UserError as error:
        print(f"mpiboot: {error}", file=sys.stderr)
        return error.exit_code
    return result if isinstance(result, int) else 0
