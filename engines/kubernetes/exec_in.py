"""A command in a running pod, with this process's stdin, stdout, stderr and terminal."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mpiboot.engines import terminal
from mpiboot.job.errors import UserError
from mpiboot.kube.channels import STDERR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpiboot.engines.kubernetes.cluster import Cluster
    from mpiboot.kube.channels import Channels


def exec_in(cluster: Cluster, pod: str, container: str, command: Sequence[str]) -> int:
    """Its exit code. Without a command it is a shell."""
    tty = terminal.is_there()
    words = command or terminal.SHELL
    channels = cluster.call(cluster.jobs.execute(pod, container, words, tty=tty))
    with terminal.lent(lambda rows, columns: cluster.start(channels.resize(rows, columns))):
        terminal.copy_stdin(
            lambda data: cluster.start(channels.send(data)).result(),
            lambda: cluster.start(channels.end_stdin()).result(),
        )
        cluster.call(_show(channels))
    if channels.exit_code is None:
        raise UserError(f"{words[0]} in {pod}: {channels.error or 'the connection broke'}")
    return channels.exit_code


async def _show(channels: Channels) -> None:
    async with channels:
        async for stream, data in channels.output():
            # The reader of our output may be slow, and other requests need this thread.
            await asyncio.to_thread(terminal.show, 2 if stream == STDERR else 1, data)
