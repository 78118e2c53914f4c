"""Free ports. Two processes may get the same one at the same time: then a server fails to start, and is retried."""

from __future__ import annotations

import contextlib
import socket


def free(address: str, count: int) -> list[int]:
    """That many different TCP ports that are free at this moment."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((address, 0))
        return [each.getsockname()[1] for each in sockets]
