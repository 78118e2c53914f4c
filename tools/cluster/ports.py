"""Free ports. Two that ask at once may get the same one: then a server does not start, and its caller asks anew."""

from __future__ import annotations

import contextlib
import socket


def free(address: str, count: int) -> list[int]:
    """That many different TCP ports which nobody holds at this moment."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((address, 0))
        return [each.getsockname()[1] for each in sockets]
