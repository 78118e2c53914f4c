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
    """The command with an option for every setting."""
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
    """Look after the MPIJobs of a Kubernetes cluster.

    Runs until it gets SIGTERM or SIGINT. Exit codes: 0 ended by a signal, 1 the cluster cannot be worked with, 2 the
    settings are wrong, 70 another replica leads.
    """
    from mpiboot.controller import logs

    settings = make(values)
    logs.set_up(settings.log_level, settings.log_format)
    return asyncio.run(serve(settings))


async def serve(settings: Settings) -> int:
    from mpiboot.controller.api import Api
    from mpiboot.controller.connection import connect
    from mpiboot.controller.replica import Replica

    async with Api(await connect(settings.kubeconfig or None), settings.concurrency) as api:
        return await Replica(api, settings).run()
