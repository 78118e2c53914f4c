"""The server of the check-in protocol, for one asyncio loop. Anything may connect; only proven peers cost anything."""

from __future__ import annotations

import asyncio
import hmac
import logging
import resource
import socket
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from mpiboot.checkin import messages, wire
from mpiboot.checkin.admission import Admission
from mpiboot.checkin.job_room import STALLED_FOR, JobRoom
from mpiboot.checkin.refusal_log import RefusalLog
from mpiboot.checkin.roster import NoSuchWorkerError, ReplacedError
from mpiboot.checkin.wire import Request, WireError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.checkin.authority import Authority, Credentials
    from mpiboot.checkin.roster import View

_LOG = logging.getLogger(__name__)

REQUEST_WITHIN = 10.0  # seconds from the connection to the end of its request, however slowly that drips
ASK_WITHIN = 8.0
LINGER_FOR = 0.5
MAX_UNPROVEN = 4096
BACKLOG = 1024  # a job's workers come all at once; one that finds the queue full loses a second
_SEND_BUFFER = 64 * 1024  # bytes the kernel may hold for a launcher that does not read; by default megabytes
LINGER_BYTES = 256 * 1024
_SPARE_FILES = 256  # of the process' limit, for everything that is not an unproven connection


class CheckinServer:
    """Takes workers' reports and streams them to launchers. Not thread-safe: call it from the loop that started it."""

    def __init__(
        self,
        authority: Authority,
        *,
        beat_every: float = messages.BEAT_EVERY,
        request_within: float = REQUEST_WITHIN,
        max_unproven: int = MAX_UNPROVEN,
        log: Callable[[str], None] = _LOG.warning,
        attempted: Callable[[str, messages.Attempt], None] = lambda *_: None,
    ) -> None:
        """`attempted` is called with a job and each attempt of its launcher that failed."""
        self._authority, self._attempted = authority, attempted
        self._beat_every, self._request_within = beat_every, request_within
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._admission = Admission(max(16, min(max_unproven, files - _SPARE_FILES)))
        self._refusals = RefusalLog(log)
        self._rooms: dict[str, JobRoom] = {}
        self._questions: dict[str, asyncio.Task[Credentials | None]] = {}
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self, host: str | None = None, port: int = 0) -> int:
        """Listen, by default on every address. Returns the port, which the system chooses if `port` is 0."""
        sock = _listen(host, port)
        # The stream's own limit is what makes a head of a gigabyte stop: beyond it, `readuntil` gives up.
        self._server = await asyncio.start_server(self._connected, sock=sock, limit=wire.MAX_HEAD, backlog=BACKLOG)
        return int(sock.getsockname()[1])

    async def close(self) -> None:
        """Stop listening and close every connection; launchers connect to another replica."""
        if self._server:
            self._server.close()
        tasks = [*self._connections, *self._questions.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def observe(self, job: str, view: View) -> None:
        """Take in the job as it is now. Cheap when nothing changed, and for jobs without a launcher or a report."""
        if room := self._rooms.get(job):
            room.observe(view)

    def forget(self, job: str) -> None:
        """Close the job's streams: the job is deleted."""
        if room := self._rooms.pop(job, None):
            room.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._connections.add(task)
        peer = writer.get_extra_info("peername")
        source = str(peer[0]).removeprefix("::ffff:") if peer else "an unknown address"
        self._admission.enter(source, writer, partial(self._cut, source, writer))
        try:
            await self._serve(source, reader, writer)
        except (OSError, TimeoutError):
            pass  # the peer closed the connection, or stalled
        except asyncio.CancelledError:
            pass  # close() ends this task, and only close() awaits it
        finally:
            self._admission.leave(source, writer)
            self._connections.discard(task)
            writer.transport.abort()

    async def _serve(self, source: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(self._request_within):
                request = await _read_request(reader)
                if request is None:
                    return
                room, take = await self._admit(request)
                if take:
                    await self._take_report(take, request, reader, writer)
        except TimeoutError:
            await self._refuse(source, WireError(408, "the request did not end in time"), reader, writer)
        except WireError as error:
            await self._refuse(source, error, reader, writer)
        else:
            if take:
                await _answer(wire.form_answer(204), reader, writer)
                return
            self._admission.leave(source, writer)
            _prepare_for_a_long_time(writer)
            await room.follow(reader, writer)

    async def _admit(self, request: Request) -> tuple[JobRoom, Callable[[bytes], None] | None]:
        """The job's room, and what takes the request's body; None for a launcher's stream."""
        target = wire.parse_worker_path(request.path)
        attempts_of = wire.parse_attempts_path(request.path)
        job = target[0] if target else attempts_of or wire.parse_stream_path(request.path)
        if job is None:
            raise WireError(404, "no such path")
        posts = bool(target or attempts_of)
        method = "POST" if posts else "GET"
        if request.method != method:
            raise WireError(405, f"only {method} here")
        if posts and request.length is None:
            raise WireError(411, "a report needs a Content-Length")
        if (request.length or 0) > (messages.MAX_BODY if posts else 0):
            raise WireError(413, f"a body may have {messages.MAX_BODY if posts else 0} bytes")
        room = await self._enter(job, request.token)
        if target:
            return room, lambda body: room.check_in(target[1], messages.parse_report(body))
        if attempts_of:
            return room, lambda body: self._attempted(attempts_of, messages.parse_attempt(body))
        return room, None

    async def _enter(self, job: str, token: str) -> JobRoom:
        room = self._rooms.get(job)
        if room and _same(room.credentials.token, token):
            return room
        credentials = await self._ask(job) if token else None
        # The same answer for a job that does not exist and for a wrong token: no client learns names by guessing.
        if credentials is None or not _same(credentials.token, token):
            raise WireError(403, "no such job, or not its token")
        room = self._rooms.get(job)  # another request may have made it meanwhile
        if room is None or room.credentials != credentials:
            view = self._authority.view(job)
            if view is None:
                raise WireError(403, "no such job, or not its token")
            self.forget(job)
            room = self._rooms[job] = JobRoom(credentials, view, self._beat_every)
        return room

    async def _ask(self, job: str) -> Credentials | None:
        """The authority's answer. A thousand workers that arrive together ask one question."""
        question = self._questions.get(job)
        if question is None:
            asked = asyncio.wait_for(self._authority.credentials(job), ASK_WITHIN)
            question = self._questions[job] = asyncio.create_task(asked, name=f"check-in: credentials of {job}")
            question.add_done_callback(partial(self._answered, job))
        try:
            return await asyncio.shield(question)
        except Exception as error:  # for any failure of the authority the client must try again
            raise WireError(503, f"cannot look up the job now ({type(error).__name__})") from error

    def _answered(self, job: str, question: asyncio.Task[Credentials | None]) -> None:
        del self._questions[job]
        if not question.cancelled():
            question.exception()  # marks it as read: the requests that wait for it may have ended

    async def _take_report(
        self,
        take: Callable[[bytes], None],
        request: Request,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        if request.expects_continue:
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            take(await reader.readexactly(request.length or 0))
        except asyncio.IncompleteReadError:
            raise WireError(400, "the body is shorter than its Content-Length") from None
        except messages.MessageError as error:
            raise WireError(400, str(error)) from None
        except NoSuchWorkerError as error:
            raise WireError(404, str(error)) from None
        except ReplacedError as error:
            raise WireError(409, str(error)) from None

    def _cut(self, source: str, writer: asyncio.StreamWriter) -> None:
        self._refusals.log(source, 429, "too many connections at once without a request")
        writer.transport.abort()

    async def _refuse(
        self, source: str, error: WireError, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if writer.transport.is_closing():
            return
        self._refusals.log(source, error.status, str(error))
        await _answer(wire.form_answer(error.status, str(error)), reader, writer)


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    """The request's head; None if the peer closed without sending anything, as port checks do."""
    try:
        head = await reader.readuntil(wire.END_OF_HEAD)
    except asyncio.IncompleteReadError as error:
        if not error.partial:
            return None
        raise WireError(400, "the request ends within its head") from None
    except asyncio.LimitOverrunError:
        raise WireError(431, f"the head has more than {wire.MAX_HEAD} bytes") from None
    return wire.parse_request(head.removesuffix(wire.END_OF_HEAD))


async def _answer(answer: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send the answer and end. Read on for a moment: unread bytes would make the close a reset, and lose the answer."""
    writer.write(answer)
    if writer.can_write_eof():
        writer.write_eof()
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_FOR):
            unread = LINGER_BYTES
            while unread > 0 and (waste := await reader.read(wire.MAX_HEAD)):
                unread -= len(waste)


def _same(expected: str, given: str) -> bool:
    return hmac.compare_digest(expected.encode(), given.encode("utf-8", "surrogateescape"))


def _listen(host: str | None, port: int) -> socket.socket:
    """One socket for both families where the system can do that: two would get two ports from port 0."""
    if host is not None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG)
    return socket.create_server(("", port), backlog=BACKLOG)


def _prepare_for_a_long_time(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # Beats that are never acknowledged end the connection after this; by default the kernel tries for 15 minutes.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(STALLED_FOR * 1000))
