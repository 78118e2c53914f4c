"""A running container's output and end, and its stdin."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Any

from docker.errors import NotFound

from mpiboot.engines.docker import faults
from mpiboot.engines.inbox import Ended, Failed
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from docker import APIClient

    from mpiboot.engines.inbox import Event, Inbox
    from mpiboot.engines.output import Output

REMOVED = 137


def follow(api: APIClient, container: str, process: str, output: Output, inbox: Inbox[Event]) -> threading.Thread:
    """Attach to a container that is about to start. A thread writes all its output, then reports its end."""
    frames = api.attach(container, stdout=True, stderr=True, stream=True, logs=False, demux=True)

    def read() -> None:
        try:
            with faults.of_engine(f"{process} was running"):
                for out, err in frames:
                    if out:
                        output.feed(process, "out", out)
                    if err:
                        output.feed(process, "err", err)
                inbox.put(_end(api, container, process))
        except UserError as error:
            inbox.put(Failed(error))
        finally:
            output.finish(process)

    thread = threading.Thread(target=read, name=f"output of {process}", daemon=True)
    thread.start()
    return thread


class ContainerStdin:
    """The stdin of a container that is about to start. Its end of file is the end of this connection."""

    def __init__(self, api: APIClient, container: str) -> None:
        # A connection of its own: where it goes through TLS it cannot be closed in one direction only.
        self._stream: Any = api.attach_socket(container, params={"stdin": 1, "stdout": 0, "stderr": 0, "stream": 1})
        self._socket: Any = getattr(self._stream, "_sock", self._stream)
        self._socket.settimeout(None)  # a program may take any time to read

    def write(self, data: bytes) -> None:
        self._socket.sendall(data)

    def close(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_WR)
        finally:
            self._stream.close()


def _end(api: APIClient, container: str, process: str) -> Ended:
    try:
        # The output may close before the program ends.
        code = int(api.wait(container, timeout=None)["StatusCode"])
        return Ended(process, code, _reason(api, container, code))
    except NotFound:
        return Ended(process, REMOVED, "its container was removed")


def _reason(api: APIClient, container: str, code: int) -> str:
    if code == 0:
        return ""
    state: dict[str, Any] = api.inspect_container(container)["State"]
    if state.get("OOMKilled"):
        return "it needed more memory than its limit allows"
    return str(state.get("Error") or "")
