"""Options whose value is a length of time."""

from __future__ import annotations

import click

from mpiboot.engines import duration


def seconds_of(_ctx: click.Context, _param: click.Parameter, text: str | None) -> float | None:
    """The value in seconds, for click's `callback`."""
    try:
        return None if text is None else duration.seconds(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
