"""Attacks that any program on the network can try. None of them disturbs other connections."""

from __future__ import annotations

import resource
import socket
import struct
import time
from functools import partial
from typing import TYPE_CHECKING

import pytest

from mpiboot.checkin import messages, wire
from mpiboot.checkin.client import post
from tests.checkin.conftest import JOB, PATIENCE, TOKEN, eventually, report, until, view

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.checkin.client import Stream
    from mpiboot.checkin.server import CheckinServer
    from tests.checkin.conftest import Jobs, Served

    Serve = Callable[..., Served]
    Listen = Callable[..., Stream]


def dial(served: Served) -> socket.socket:
    return socket.create_connection((served.host, served.port), timeout=PATIENCE)


def answer(sock: socket.socket) -> str:
    """All that comes until the server ends the connection."""
    said = b""
    try:
        while more := sock.recv(65536):
            said += more
    except ConnectionResetError:
        pass
    return said.decode()


def ask(served: Served, request: bytes) -> str:
    with dial(served) as sock:
        sock.sendall(request)
        return answer(sock)


def report_request(index: int = 0, job: str = JOB, token: str = TOKEN, body: bytes | None = None) -> bytes:
    text = messages.form_report(report()) if body is None else body
    return wire.form_request("POST", wire.worker_path(job, index), "server", token, text)


def assert_undisturbed(served: Served) -> None:
    """A worker gets through, at once."""
    assert post([served.url], JOB, 0, report(), TOKEN, time.monotonic() + PATIENCE).accepted


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (report_request(token="wrong"), "403"),
        (report_request(job="default/other", token=TOKEN), "403"),
        (report_request(job="default/none"), "403"),
        (report_request(index=2), "404"),
        (report_request(body=b"{}"), "400"),
        (report_request(body=b"\x00" * 100), "400"),
        (report_request(body=b"x" * 5000), "413"),
        (b"GET / HTTP/1.1\r\n\r\n", "404"),
        (b"GET /v1/jobs/default/pi/workers/0 HTTP/1.1\r\n\r\n", "405"),
        (b"DELETE /v1/jobs/default/pi/stream HTTP/1.1\r\n\r\n", "405"),
        (b"POST /v1/jobs/default/pi/workers/0 HTTP/1.1\r\n\r\n", "411"),
        (b"GET /v1/jobs/default/pi/stream HTTP/1.1\r\n\r\n", "403"),
        (b"GET /v1/jobs/default/pi/stream HTTP/1.1\r\nContent-Length: 9\r\n\r\n", "413"),
        (b"\x16\x03\x01\x00\xa5\r\n\r\n", "400"),
        (b"x" * 100_000, "431"),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000, "431"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bad_request_is_refused_clearly_and_logged_once(
    served: Served, jobs: Jobs, request_: bytes, status: str
) -> None:
    jobs.add("default/other", "its own", size=2)
    for _ in range(3):
        assert ask(served, request_).startswith(f"HTTP/1.1 {status} ")
    assert len(served.log) == 1
    assert f"check-in from 127.0.0.1 refused: {status} " in served.log[0]
    assert TOKEN not in served.log[0]
    assert_undisturbed(served)


def test_a_report_that_ends_early_is_refused(served: Served) -> None:
    with dial(served) as sock:
        sock.sendall(report_request()[:-5])
        sock.shutdown(socket.SHUT_WR)
        assert answer(sock).startswith("HTTP/1.1 400 ")


def test_a_body_of_a_gigabyte_is_neither_read_nor_waited_for(served: Served) -> None:
    head = report_request(body=b"").replace(b"Content-Length: 0", b"Content-Length: 1073741824")
    sent, chunk = 0, bytes(1 << 20)
    with dial(served) as sock:
        sock.sendall(head)
        try:
            while sent < 1 << 30:
                sent += sock.send(chunk)
        except OSError:
            pass  # the server hung up, as it should
        assert answer(sock).startswith("HTTP/1.1 413 ")
    assert sent < 64 << 20
    assert_undisturbed(served)


def test_a_client_that_asks_before_it_sends_is_answered(served: Served) -> None:
    request = report_request().replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n", 1)
    head, _, body = request.partition(b"\r\n\r\n")
    with dial(served) as sock:
        sock.sendall(head + b"\r\n\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 100 ")
        sock.sendall(body)
        assert answer(sock).startswith("HTTP/1.1 204 ")


@pytest.mark.parametrize(
    "begun", [b"", b"POST /v1/jobs", report_request()[:-1]], ids=["mute", "in the head", "in the body"]
)
def test_a_slow_client_is_timed_out_while_others_are_served(serve: Serve, begun: bytes) -> None:
    served = serve(request_within=0.3)
    with dial(served) as sock:
        sock.sendall(begun)
        assert_undisturbed(served)
        assert answer(sock).startswith("HTTP/1.1 408 ")
    assert len(served.log) == 1


def test_bytes_that_drip_do_not_extend_the_time(serve: Serve) -> None:
    served = serve(request_within=0.3)
    with dial(served) as sock:
        sock.settimeout(0.02)
        end = time.monotonic() + PATIENCE
        said = b""
        while not said and time.monotonic() < end:
            sock.sendall(b"x")
            try:
                said = sock.recv(100)
            except TimeoutError:
                continue
        assert said.startswith(b"HTTP/1.1 408 ")


def test_thousands_of_idle_connections_do_not_lock_workers_out(serve: Serve, listen: Listen) -> None:
    many = min(3000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2 - 300)
    served = serve(max_unproven=many // 3)
    stream = listen(served.url)
    until(stream, lambda s: s.connected)
    crowd = [dial(served) for _ in range(many)]
    try:
        assert_undisturbed(served)
        until(stream, lambda s: s.workers[0].ready)
        assert len(served.server._admission) <= many // 3
        assert sum("429" in line for line in served.log) == 1
    finally:
        for sock in crowd:
            sock.close()
    eventually(lambda: served.connections() == 1)


def test_connections_that_vanish_leave_nothing_behind(served: Served) -> None:
    for begun in (b"", b"POST /v1", report_request()[:-1], report_request()):
        sock = dial(served)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close resets
        sock.sendall(begun)
        sock.close()
    assert_undisturbed(served)
    eventually(lambda: served.connections() == 0 and len(served.server._admission) == 0)


def test_a_launcher_that_does_not_read_costs_no_memory_and_delays_no_other(
    serve: Serve, jobs: Jobs, listen: Listen
) -> None:
    size, rounds = 2000, 100
    jobs.add(JOB, TOKEN, size=size)
    served = serve()
    with socket.socket() as sleeper:
        sleeper.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sleeper.connect((served.host, served.port))
        sleeper.sendall(wire.form_request("GET", wire.stream_path(JOB), "server", TOKEN))
        stream = listen(served.url)
        until(stream, lambda s: s.connected)
        for number in range(1, rounds + 1):
            served.call(partial(everybody_restarts, served.server, size, number))
            until(stream, lambda s, number=number: s.workers[-1].port == number)  # type: ignore[misc]
        readers = served.server._rooms[JOB]._readers
        assert len(readers) == 2
        one_line = len(messages.form_line(messages.Line("snapshot", stream.latest.workers)))
        assert served.call(lambda: max(r.transport.get_write_buffer_size() for r in readers)) <= one_line
        # When it wakes up, it learns the newest state without most of what was in between.
        sleeper.settimeout(PATIENCE)
        with sleeper.makefile("rb") as lines:
            while lines.readline().strip():
                pass  # the head of the answer
            heard = 0
            while True:
                heard += 1
                line = messages.parse_line(lines.readline())
                assert line
                if line.workers and line.workers[-1].port == rounds:
                    break
        assert heard <= 10


def everybody_restarts(server: CheckinServer, size: int, number: int) -> None:
    for index in range(size):
        server._rooms[JOB].check_in(index, report(number, start=str(number)))


def test_the_newest_stream_of_a_job_is_let_in_and_the_oldest_goes(served: Served) -> None:
    request = wire.form_request("GET", wire.stream_path(JOB), "server", TOKEN)
    streams = []
    for _ in range(20):
        streams.append(dial(served))
        streams[-1].sendall(request)
        assert streams[-1].recv(100).startswith(b"HTTP/1.1 200 ")
    assert '"snapshot"' in answer(streams[0])
    eventually(lambda: served.connections() == 8)
    served.observe(view(3))
    eventually(lambda: b"pi-worker-2" in streams[-1].recv(65536))
    for sock in streams:
        sock.close()
