"""The launcher's end: the roster of the job, kept up to date whatever happens to servers and connections."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.checkin import messages, retry_pauses, wire
from mpiboot.checkin.dial import ANSWER_WITHIN, CONNECT_WITHIN, Address, DialError, connect, read_head, resolve
from mpiboot.checkin.messages import BEAT_EVERY, WorkerState

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

SILENT_FOR = 2.5 * BEAT_EVERY  # two beats missed: the peer is gone, also if TCP still shows a connection


class Snapshot(NamedTuple):
    """All that is known now; `workers` is empty until a server has answered.

    While not connected, `workers` is the last roster and `error` is the reason why there is none newer.
    """

    workers: tuple[WorkerState, ...]
    connected: bool
    error: str = ""


class Stream:
    """The roster of one job, kept up to date by a thread that reconnects to any address behind `urls`.

    For a selectors loop: `fileno()` is readable when `poll()` has news.
    Raises `wire.WireError` for a malformed url, job or token when made, nothing later.
    """

    def __init__(self, urls: Sequence[str], job: str, token: str, *, silent_for: float = SILENT_FOR) -> None:
        self._urls, self._job, self._token, self._silent_for = tuple(urls), job, token, silent_for
        wire.check_target(self._urls, job, token)
        self._lock = threading.Lock()
        self._workers: dict[int, WorkerState] = {}
        self._latest = Snapshot((), connected=False, error="not connected yet")
        self._news = False
        self._readable, self._waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._closing = threading.Event()
        self._socket: socket.socket | None = None
        self._thread = threading.Thread(target=self._run, name="check-in stream", daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        return self._readable

    @property
    def latest(self) -> Snapshot:
        """What is known now, news or not."""
        return self._latest

    def poll(self) -> Snapshot | None:
        """The latest snapshot, or None if nothing changed since the last call. Never blocks."""
        with self._lock:
            if not self._news:
                return None
            self._news = False
            if not self._closing.is_set():
                os.read(self._readable, 1)
            return self._latest

    def close(self) -> None:
        """End the thread and the connection; may be called twice."""
        with self._lock:
            if self._closing.is_set():
                return
            self._closing.set()
            os.close(self._readable)
            os.close(self._waker)
            if self._socket:
                _hang_up(self._socket)
        self._thread.join(0.5)  # it may hang in a name look-up: a daemon, so leave it there

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        pause = retry_pauses.FIRST
        while not self._closing.is_set():
            received = self._one_round()
            pause = retry_pauses.FIRST if received else retry_pauses.after(pause)
            self._closing.wait(retry_pauses.jittered(pause))

    def _one_round(self) -> bool:
        """Try each address once, quickest first; True if one of them sent a roster before the connection was lost."""
        try:
            candidates = resolve(self._urls)
        except DialError as error:
            self._lost(str(error))
            return False
        while candidates and not self._closing.is_set():
            try:
                address, sock = connect(candidates, CONNECT_WITHIN)
            except DialError as error:
                self._lost(str(error))
                return False
            candidates.remove(address)
            try:
                with sock:
                    received = self._follow(address, sock)
            finally:
                self._socket = None
            if received:
                return True
        return False

    def _follow(self, address: Address, sock: socket.socket) -> bool:
        """Read one connection to its end; True if it sent a roster."""
        with self._lock:
            if self._closing.is_set():
                return False
            self._socket = sock
        received = False
        try:
            sock.settimeout(ANSWER_WITHIN)
            sock.sendall(wire.form_request("GET", wire.stream_path(self._job), address.name, self._token))
            status, rest = read_head(sock)
            if status != 200:
                raise DialError(f"{status} {messages.one_line(rest.decode('utf-8', 'replace')).strip()}")
            sock.settimeout(self._silent_for)
            while True:
                *lines, rest = rest.split(b"\n")
                for line in lines:
                    received = self._take(line) or received
                if len(rest) > messages.MAX_LINE:
                    raise DialError("a line without end")
                more = sock.recv(262144)
                if not more:
                    raise DialError("the server closed the stream")
                rest += more
        except TimeoutError:
            self._lost(f"{address}: silent")
        except (OSError, ValueError) as error:  # ValueError: not this protocol
            self._lost(f"{address}: {error}")
        return received

    def _take(self, text: bytes) -> bool:
        line = messages.parse_line(text)
        if line is None or line.kind == "beat":
            return False
        sent = {w.index: _merged(self._workers.get(w.index), w) for w in line.workers}
        self._workers = sent if line.kind == "snapshot" else self._workers | sent
        workers = tuple(self._workers[i] for i in sorted(self._workers))
        self._publish(Snapshot(workers, connected=True))
        return True

    def _lost(self, error: str) -> None:
        self._publish(Snapshot(self._latest.workers, connected=False, error=error))

    def _publish(self, snapshot: Snapshot) -> None:
        with self._lock:
            if snapshot == self._latest or self._closing.is_set():
                return
            self._latest = snapshot
            if not self._news:
                self._news = True
                os.write(self._waker, b"x")


def _merged(known: WorkerState | None, sent: WorkerState) -> WorkerState:
    """The worker's state. Its own report stays valid when a restarted server has not received it."""
    knows_less = sent.state in ("unknown", "running")
    if known and known.ready and known.name == sent.name and knows_less and sent.uid in ("", known.uid):
        return known
    return sent


def _hang_up(sock: socket.socket) -> None:
    with suppress(OSError):  # never connected, or gone already: what we want
        sock.shutdown(2)  # wakes the thread that reads it; close alone would not
