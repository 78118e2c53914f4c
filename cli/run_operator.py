"""`mpiboot operator`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from mpiboot.controller.settings import OPTIONS, make

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.controller.settings import Settings


def options(command: Callable[..., int]) -> Callable[..., int]:
    """Add an option for every setting to the command."""
    for option in reversed(OPTIONS):
        flag = f"{option.flag}/--no-{option.flag[2:]}" if isinstance(option.default, bool) else option.flag
        kind = click.Choice(option.choices) if option.choices else type(option.default)
        add = click.option(
            flag,
            option.name,
            type=kind,
            default=option.default,
            show_default=True if option.default != "" else "none",
            envvar=option.variable,
            show_envvar=True,
            help=option.help,
        )
        command = add(command)
    return command


@click.command()
@options
def operator(**values: str | int | bool) -> int:
    """Run the operator, which runs the MPIJobs of a Kubernetes cluster.

    It runs until it gets SIGTERM or SIGINT. Example: mpiboot operator --kubeconfig ~/.kube/config.

    Exit codes: 0 ended by a signal; 1 the cluster refuses what the operator needs; 2 the settings are wrong.
    """
    from mpiboot.controller import logs

    settings = make(values)
    logs.set_up(settings.log_level, settings.log_format)
    return asyncio.run(serve(settings))


async def serve(settings: Settings) -> int:
    from mpiboot.controller.operator_process import Replica
    from mpiboot.kube.api import Api
    from mpiboot.kube.connection import connect

    async with Api(await connect(settings.kubeconfig or None), settings.concurrency) as api:
        return await Replica(api, settings).run()
