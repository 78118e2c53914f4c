"""A command in a running container, with this process's stdin, stdout, stderr and terminal."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from docker.utils.socket import frames_iter

from mpiboot.engines import terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from docker import APIClient

STDERR = 2  # of docker's frames


def exec_in(api: APIClient, container: str, command: Sequence[str]) -> int:
    """Its exit code. Without a command it is a shell."""
    tty = terminal.is_there()
    made = api.exec_create(container, list(command or terminal.SHELL), stdin=True, tty=tty)["Id"]
    stream: Any = api.exec_start(made, tty=tty, socket=True)
    raw: Any = getattr(stream, "_sock", stream)
    raw.settimeout(None)  # a command may print nothing for hours

    with terminal.lent(lambda rows, columns: api.exec_resize(made, height=rows, width=columns)):
        terminal.copy_stdin(raw.sendall, lambda: raw.shutdown(socket.SHUT_WR))
        for number, data in frames_iter(stream, tty):  # type: ignore[no-untyped-call]
            terminal.show(2 if number == STDERR else 1, data)
    return int(api.exec_inspect(made)["ExitCode"])
