"""The root of the command line. Each command is imported only when it is asked for."""

from __future__ import annotations

import sys
from typing import ClassVar

import click

from mpiboot import __version__
from mpiboot.cli.lazy_commands import LazyGroup, Table
from mpiboot.job.errors import UserError
from mpiboot.job.printable import printable

# name -> where it lives, what it does. The tables keep `mpiboot --help` from importing docker and the rest.
RUN: Table = {
    "run": ("mpiboot.cli.run:run", "Run an MPI job on this machine or on a cluster."),
    "cc": ("mpiboot.cli.cc:cc", "Compile an MPI program of the current directory."),
    "ps": ("mpiboot.cli.ps:ps", "List jobs."),
    "status": ("mpiboot.cli.status:status", "Show the state of a job."),
    "logs": ("mpiboot.cli.logs:logs", "Print the output of a job."),
    "events": ("mpiboot.cli.events:events", "List what happened to a job."),
    "wait": ("mpiboot.cli.wait:wait", "Wait for the end of a job, or for a condition."),
    "shell": ("mpiboot.cli.shell:shell", "Open a shell in a container of a job."),
    "scale": ("mpiboot.cli.scale:scale", "Give a running elastic job more or fewer workers."),
    "delete": ("mpiboot.cli.delete:delete", "End jobs and remove all that belongs to them."),
    "prune": ("mpiboot.cli.prune:prune", "Remove what is kept of jobs that have ended."),
}
MANIFESTS: Table = {
    "init": ("mpiboot.cli.init:init", "Write a first manifest with comments, and a Dockerfile."),
    "generate": ("mpiboot.cli.generate:generate", "Print the manifests of a prototype."),
    "lint": ("mpiboot.cli.lint:lint", "Print what is wrong or outdated in a manifest."),
    "convert": ("mpiboot.cli.convert:convert", "Print a manifest of an older version as v2beta1."),
}
CLUSTER: Table = {
    "install": ("mpiboot.cli.install:install", "Write what installs the operator from your registry."),
    "bundle": ("mpiboot.cli.install:bundle", "Write images and manifests as one file, for an air-gapped cluster."),
    "operator": ("mpiboot.cli.run_operator:operator", "Run the operator, which runs the MPIJobs of a cluster."),
}
IMAGES: Table = {
    "images": ("mpiboot.cli.images:images", "Build, list and check MPI images."),
}
# src/mpiboot/__main__.py starts these without click: its import takes 50 ms, as long as the rest of their start.
CONTAINERS: Table = {
    "launch": ("", "Wait for the workers, then run a command (in a launcher)."),
    "worker": ("", "Serve SSH to the launcher (in a worker)."),
    "wait": ("", "Wait for the workers and do nothing else."),
    "hosts": ("", "Print the hosts that are ready, with their slots."),
}

# Import name -> the package that brings it. A plain installation has all of them; our images have few.
DISTRIBUTIONS = {
    "aiohttp": "aiohttp",
    "cryptography": "cryptography",
    "docker": "docker",
    "kubernetes_asyncio": "kubernetes_asyncio",
    "paramiko": "paramiko",
    "requests": "requests",
    "testinfra": "pytest-testinfra",
    "yaml": "PyYAML",
}


class Commands(LazyGroup):
    """All commands of `mpiboot`."""

    sections: ClassVar = {
        "Run": RUN, "Manifests": MANIFESTS, "Cluster": CLUSTER, "Images": IMAGES, "Inside containers": CONTAINERS,
    }  # fmt: skip

    @property
    def table(self) -> Table:
        # Of the two that are named `wait`, this is the one that waits for a job.
        return CONTAINERS | {name: row for name, row in super().table.items() if row[0]} | RUN

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in super().list_commands(ctx) if self.table[name][0]]


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mpiboot")
def root() -> None:
    """Run MPI programs on many machines, from a laptop to a Kubernetes cluster.

    Exit codes: 0 done, 2 the input is wrong; `mpiboot COMMAND --help` lists those of a command.
    """


def main(argv: list[str], program: str = "mpiboot", defaults: dict[str, dict[str, str]] | None = None) -> int:
    """The exit code of the command line `argv`. `defaults`: values for options that it leaves out, by command."""
    try:
        result = root.main(args=argv, prog_name=program, standalone_mode=False, default_map=defaults)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else program
        print(f"mpiboot: {error.format_message().rstrip('.')}; see: {command} --help", file=sys.stderr)
        return error.exit_code
    except click.ClickException as error:
        print(f"mpiboot: {error.format_message()}", file=sys.stderr)
        return error.exit_code
    except click.Abort:
        return 130
    except UserError as error:
        print(f"mpiboot: {printable(str(error))}", file=sys.stderr)
        return error.exit_code
    except ModuleNotFoundError as error:
        package = DISTRIBUTIONS.get((error.name or "").partition(".")[0])
        if package is None:
            raise
        text = f"the Python package {package} is missing; install it with: pip install {package}"
        print(f"mpiboot: {text}", file=sys.stderr)
        return 2
    return result if isinstance(result, int) else 0
