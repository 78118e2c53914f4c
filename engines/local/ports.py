"""Loopback addresses and free ports for workers: an address for each, so that each is a host of its own."""

from __future__ import annotations

import os
import pwd
import socket
from contextlib import ExitStack

from mpiboot.engines.local.layout import Endpoint

PER_NET = 250


def endpoints(workers: int) -> list[Endpoint]:
    """127.0.1.1, 127.0.1.2, ... each with a free port, so that two jobs do not meet."""
    user = pwd.getpwuid(os.getuid()).pw_name
    found = []
    with ExitStack() as held:
        for index in range(workers):
            address = f"127.0.{1 + index // PER_NET}.{1 + index % PER_NET}"
            probe = held.enter_context(socket.socket())
            probe.bind((address, 0))
            found.append(Endpoint(address, int(probe.getsockname()[1]), user))
    return found
