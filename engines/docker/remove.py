"""The removal of a run: everything with its label, again and again until nothing is found."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from docker.errors import APIError, NotFound

from mpiboot.engines.docker import labels
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from docker import APIClient

# An engine under load needs several seconds until it can remove a network whose containers are gone.
GONE_WITHIN = 60.0
IN_PARALLEL = 8


class LeftOverError(UserError):
    """The engine did not remove something."""

    exit_code = 1


def remove_run(api: APIClient, run: str) -> None:
    """Kill and remove all that has the run's label; returns when it is gone."""
    deadline = time.monotonic() + GONE_WITHIN
    errors: list[str] = []
    while True:
        steps = _left(api, run)
        if not any(steps):
            return
        if time.monotonic() > deadline:
            what = f"; its answer: {errors[-1]}" if errors else ""
            raise LeftOverError(f"the engine did not remove all of the job within {GONE_WITHIN:.0f} s{what}")
        errors = []
        # The launcher's name guards the job's name until its container is gone, so it is removed last.
        for removals in steps:
            with ThreadPoolExecutor(IN_PARALLEL) as pool:
                errors += [error for error in pool.map(_attempt, removals) if error]
        if errors:
            time.sleep(0.1)  # between two tries: the engine is still busy


def _left(api: APIClient, run: str) -> tuple[list[Callable[[], object]], ...]:
    of_run = {"label": [f"{labels.RUN}={run}"]}
    containers = api.containers(all=True, filters=of_run)
    launchers = [one["Id"] for one in containers if one["Labels"].get(labels.ROLE) == "launcher"]
    others = [one["Id"] for one in containers if one["Id"] not in launchers]
    networks = [one["Id"] for one in api.networks(filters=of_run)]
    volumes = [one["Name"] for one in api.volumes(filters=of_run)["Volumes"] or ()]
    return (
        [partial(api.remove_container, one, v=True, force=True) for one in others],
        [partial(api.remove_container, one, v=True, force=True) for one in launchers],
        [
            *(partial(api.remove_network, one) for one in networks),
            *(partial(api.remove_volume, one, force=True) for one in volumes),
        ],
    )


def _attempt(removal: Callable[[], object]) -> str:
    """Why the engine refuses; empty if the object is gone."""
    try:
        removal()
    except NotFound:
        return ""
    except APIError as error:
        return str(error.explanation or error)
    return ""
