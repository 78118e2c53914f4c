"""Runs one command in a container that sees the current directory, as the user who calls; nothing of it is left."""

from __future__ import annotations

import secrets
import signal
import time
from typing import TYPE_CHECKING

from docker.errors import APIError
from docker.types import Mount

from mpiboot.engines.docker import bind_mounts, faults, streams
from mpiboot.engines.docker.labels import RunLabels
from mpiboot.engines.inbox import LAUNCHER, Ended, Failed, Inbox, Interrupted, signals_to
from mpiboot.engines.output import Output
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from docker import APIClient

    from mpiboot.engines.directories import Mount as Shown
    from mpiboot.engines.inbox import Event

NOT_FOUND = 127


def run(api: APIClient, image: str, command: Sequence[str], workdir: Shown) -> int:
    """The command's exit code."""
    inbox: Inbox[Event] = Inbox()
    output = Output(quiet=True, on_broken_pipe=lambda: inbox.put(Interrupted(signal.SIGPIPE)))
    user = bind_mounts.caller(api.info())
    host = api.create_host_config(
        mounts=[Mount(workdir.target, workdir.source, type="bind")], group_add=[str(group) for group in user.groups]
    )
    # `mpiboot delete` finds the container by its labels if this process is killed.
    run = RunLabels("cc", secrets.token_hex(4), time.time(), 0)
    with signals_to(inbox), faults.of_engine("a program was being compiled"):
        container = api.create_container(
            image, entrypoint=[command[0]], command=list(command[1:]), user=str(user), working_dir=workdir.target,
            labels=run.of(LAUNCHER, 0), host_config=host,
        )["Id"]  # fmt: skip
        try:
            streams.follow(api, container, LAUNCHER, output, inbox)
            _start(api, container, image, command[0])
            match inbox.get():
                case Ended(_, code):
                    return int(code)
                case Interrupted(number):
                    return 128 + number
                case Failed(error):
                    raise error
                case _:
                    return 1
        finally:
            api.remove_container(container, v=True, force=True)


def _start(api: APIClient, container: str, image: str, program: str) -> None:
    try:
        api.start(container)
    except APIError as error:
        why = str(error.explanation or error)
        if "not found" in why or "no such file" in why:
            raise faults.NotStartedError(f"the image {image} has no program {program}", NOT_FOUND) from error
        raise UserError(f"{program} does not start in {image}: {why}") from error
