"""The streams of a container: of a program that is started in it (exec), or of its own first process (attach)."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

import aiohttp

from mpiboot.kube import kinds
from mpiboot.kube.api_error import ApiError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from mpiboot.kube.api import Api

STDIN, STDOUT, STDERR, STATUS, RESIZE = range(5)
CLOSE = 255
HALF_CLOSES = "v5.channel.k8s.io"  # it can say that one stream ends
PROTOCOLS = (HALF_CLOSES, "v4.channel.k8s.io")
CHUNK = 2**17


class Channels:
    """An open connection. It ends with `async with`."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, what: str) -> None:
        self._socket, self._what = socket, what
        self.exit_code: int | None = None  # of the program, once it has ended
        self.error = ""  # why the container's runtime could not do it

    async def __aenter__(self) -> Channels:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._socket.close()

    async def send(self, data: bytes) -> None:
        """Write to stdin; waits until the connection takes it."""
        try:
            for at in range(0, len(data), CHUNK):
                await self._socket.send_bytes(bytes([STDIN]) + data[at : at + CHUNK])
        except (aiohttp.ClientError, OSError) as error:
            raise UnreachableError(f"{self._what}: {error}") from error

    async def resize(self, rows: int, columns: int) -> None:
        """Tell the program's terminal its size."""
        with suppress(aiohttp.ClientError, OSError):  # it has ended
            size = json.dumps({"Width": columns, "Height": rows}).encode()
            await self._socket.send_bytes(bytes([RESIZE]) + size)

    async def ping(self) -> None:
        """Show whatever stands in between that the connection lives."""
        try:
            await self._socket.ping()
        except (aiohttp.ClientError, OSError) as error:
            raise UnreachableError(f"{self._what}: {error}") from error

    async def end_stdin(self) -> None:
        """Give end of file to the other side. An older server learns it from the end of the connection."""
        if self._socket.protocol != HALF_CLOSES:
            await self._socket.close()
            return
        try:
            await self._socket.send_bytes(bytes([CLOSE, STDIN]))
        except (aiohttp.ClientError, OSError) as error:
            raise UnreachableError(f"{self._what}: {error}") from error

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """Pieces of stdout and stderr. Afterwards `exit_code` or `error` is set; neither: the connection broke."""
        async for message in self._socket:
            if message.type is not aiohttp.WSMsgType.BINARY or len(message.data) < 2:
                continue
            channel, data = message.data[0], message.data[1:]
            if channel == STATUS:
                self._end(data)
            elif channel in (STDOUT, STDERR):
                yield channel, data

    def _end(self, data: bytes) -> None:
        try:
            status = json.loads(data)
            causes = (status.get("details") or {}).get("causes") or ()
            codes = [int(each["message"]) for each in causes if each.get("reason") == "ExitCode"]
        except (ValueError, AttributeError, KeyError, TypeError):
            self.error = data.decode(errors="replace")
            return
        if status.get("status") == "Success":
            self.exit_code = 0
        elif codes:
            self.exit_code = codes[0]
        else:
            self.error = str(status.get("message") or "it failed")


async def execute(
    api: Api, namespace: str, pod: str, container: str, command: Sequence[str], *, tty: bool = False
) -> Channels:
    """Start a program in a container, with stdin, stdout and stderr, or with a terminal."""
    words = [("command", word) for word in command]
    streams = [("stdin", "true"), ("stdout", "true"), ("tty", "true") if tty else ("stderr", "true")]
    params = [("container", container), *words, *streams]
    return await _opened(api, kinds.POD.path(namespace, pod, "exec"), params)


async def attach(api: Api, namespace: str, pod: str, container: str, *, stdin: bool, output: bool) -> Channels:
    """The streams of a container's first process, from now on."""
    params = [("container", container), ("stdin", str(stdin).lower())]
    params += [("stdout", str(output).lower()), ("stderr", str(output).lower())]
    return await _opened(api, kinds.POD.path(namespace, pod, "attach"), params)


async def _opened(api: Api, path: str, params: Sequence[tuple[str, str]]) -> Channels:
    try:
        return Channels(await api.upgraded(path, params, PROTOCOLS), path.rpartition("/")[2])
    except aiohttp.WSServerHandshakeError as error:
        # The answer's text is not kept.
        why = {403: "your account may not do that", 404: "there is no such pod"}.get(error.status, error.message)
        raise ApiError(error.status, "", f"{path}: {why} (HTTP {error.status})") from None
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise UnreachableError(f"{path}: {str(error) or type(error).__name__}") from error
