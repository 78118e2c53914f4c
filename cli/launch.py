"""`mpiboot launch`, `wait`, `hosts` and `worker` for click: the same options, from the same table, for help and docs.

What runs them is the parser in `bootstrap/options.py`, which does without click; both accept the same words.
"""

from __future__ import annotations

import click

from mpiboot.bootstrap import options
from mpiboot.bootstrap.__main__ import main


def _command(name: str) -> click.Command:
    described = options.command_named(name)
    codes = "; ".join(f"{code}: {meaning}" for code, meaning in described.exit_codes)
    params: list[click.Parameter] = [_option(option) for option in options.options_of(name)]
    if name == "launch":
        params.append(click.Argument(["command"], nargs=-1, type=click.UNPROCESSED))
    return click.Command(
        name,
        params=params,
        help=f"{described.summary}\n\nExit codes: {codes}.",
        callback=_callback(name),
        context_settings={"allow_interspersed_args": False},
    )


def _option(option: options.Option) -> click.Option:
    return click.Option(
        [option.flag],
        envvar=option.variable,
        show_envvar=True,
        show_default=True,
        default=option.default if option.metavar else False,
        is_flag=not option.metavar,
        metavar=option.metavar or None,
        type=click.Choice(option.choices) if option.choices else str if option.metavar else bool,
        help=option.help,
    )


def _callback(name: str):  # type: ignore[no-untyped-def]  # noqa: ANN202 (click passes the options as it likes)
    def run(command: tuple[str, ...] = (), **values: object) -> int:
        given: list[str] = []
        for option in options.options_of(name):
            value = values[option.key]
            if option.metavar:
                given.append(f"{option.flag}={value}")
            elif value:
                given.append(option.flag)
        return main([name, *given, *(("--", *command) if command else ())])

    return run


launch, wait, hosts, worker = map(_command, ("launch", "wait", "hosts", "worker"))
