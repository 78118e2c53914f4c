"""Where a job runs: on containers if an engine answers, else on processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.containers import NoEngineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from docker import APIClient

ENGINES = ("docker", "local")


def docker_or_local(wanted: str | None, note: Callable[[str], None]) -> APIClient | None:
    """The Docker engine's client, or None for processes on this machine."""
    if wanted == "local":
        return None
    from mpiboot.engines.docker import client

    try:
        return client.connect()
    except NoEngineError as error:
        if wanted == "docker":
            raise
        note(f"{error}\nmpiboot: the job runs as processes of this machine instead (--engine local)")
        return None
