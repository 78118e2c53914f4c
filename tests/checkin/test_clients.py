"""Workers that post and launchers that listen, through a real server on real sockets."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from mpiboot.checkin import wire
from mpiboot.checkin.client import Posted, Report, Stream, post
from mpiboot.checkin.roster import Pod
from mpiboot.checkin.wire import WireError
from tests.checkin.conftest import JOB, PATIENCE, TOKEN, eventually, report, states, until, view

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.checkin.conftest import Jobs, Served

    Serve = Callable[..., Served]
    Listen = Callable[..., Stream]


def check_in(
    *urls: str, index: int = 0, said: Report | None = None, token: str = TOKEN, within: float = PATIENCE
) -> Posted:
    return post(urls, JOB, index, said or report(), token, time.monotonic() + within)


def test_a_launcher_receives_each_worker_as_it_comes(served: Served, listen: Listen) -> None:
    stream = listen(served.url)
    assert states(until(stream, lambda s: s.connected)) == ["unknown", "unknown"]
    told = check_in(served.url, index=1, said=report(2223, "a", "1"))
    assert told == Posted((f"127.0.0.1:{served.port}",), ())
    worker = until(stream, lambda s: s.workers[1].ready).workers[1]
    assert worker == ("pi-worker-1", 1, "ready", "10.0.0.1", 2223, "mpiuser", "a", "", "1")
    assert states(stream.latest) == ["unknown", "ready"]


def test_a_late_launcher_gets_the_whole_picture_first(served: Served, listen: Listen) -> None:
    for index in range(2):
        check_in(served.url, index=index)
    assert states(until(listen(served.url), lambda s: s.connected)) == ["ready", "ready"]


def test_a_worker_that_restarts_is_seen_under_its_new_identity(served: Served, listen: Listen) -> None:
    stream = listen(served.url)
    check_in(served.url, said=report(uid="a", start="1"))
    until(stream, lambda s: s.connected and s.workers[0].uid == "a")
    check_in(served.url, said=report(2230, uid="b", start="2"))
    until(stream, lambda s: s.workers[0].uid == "b" and s.workers[0].port == 2230)
    refused = check_in(served.url, said=report(uid="a", start="1"))
    assert not refused.accepted
    assert "409 worker 0 has been replaced" in refused.failures[0]


def test_reasons_are_passed_on_as_they_change(served: Served, listen: Listen) -> None:
    stream = listen(served.url)
    served.observe(view(2, {1: Pod("pending", reason="not there yet")}))  # may be before or after the stream begins
    until(stream, lambda s: s.connected)
    served.observe(view(2, {1: Pod("pending", "a", reason="ImagePullBackOff: no such image")}))
    until(stream, lambda s: s.workers[1].reason == "ImagePullBackOff: no such image")
    served.observe(view(2, {1: Pod("running", "a", "10.0.0.7")}))
    until(stream, lambda s: s.workers[1].state == "running" and s.workers[1].address == "10.0.0.7")


def test_a_job_that_grows_is_sent_as_a_whole(served: Served, listen: Listen) -> None:
    stream = listen(served.url)
    check_in(served.url)
    until(stream, lambda s: states(s) == ["ready", "unknown"])
    served.observe(view(3))
    until(stream, lambda s: states(s) == ["ready", "unknown", "unknown"])
    served.observe(view(1))
    until(stream, lambda s: states(s) == ["ready"])


def test_a_worker_without_an_address_posts_the_one_it_reaches_the_server_from(served: Served, listen: Listen) -> None:
    check_in(served.url, said=Report("", 2222, "mpiuser"))
    assert until(listen(served.url), lambda s: s.connected).workers[0].address == "127.0.0.1"


def test_a_quiet_stream_beats(serve: Serve) -> None:
    served = serve(beat_every=0.01)
    with socket.create_connection((served.host, served.port), timeout=PATIENCE) as sock, sock.makefile("rb") as lines:
        sock.sendall(wire.form_request("GET", wire.stream_path(JOB), "server", TOKEN))
        while lines.readline().strip():
            pass  # the head of the answer
        kinds = [json.loads(lines.readline())["type"] for _ in range(4)]
    assert kinds == ["snapshot", "beat", "beat", "beat"]


def test_beats_keep_a_stream_and_are_no_news(serve: Serve, listen: Listen) -> None:
    served = serve(beat_every=0.05)
    stream = listen(served.url, silent_for=2.0)
    until(stream, lambda s: s.connected)
    stream.poll()  # that news may have come before the test waited for it
    time.sleep(2.5)  # longer than the client waits without any message: only beats can have kept it
    assert stream.latest.connected
    assert stream.poll() is None


def test_a_server_that_falls_silent_is_left(listen: Listen) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        stream = listen(f"http://127.0.0.1:{mute.getsockname()[1]}", silent_for=0.2)
        connection, _ = mute.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(b'HTTP/1.1 200 OK\r\n\r\n{"type":"snapshot","workers":[]}\n')
            until(stream, lambda s: s.connected)
            until(stream, lambda s: not s.connected and "silent" in s.error)
        mute.accept()[0].close()  # and it has come back


def test_a_restarted_server_does_not_take_back_what_workers_said(serve: Serve, listen: Listen) -> None:
    first = serve()
    stream = listen(first.url)
    check_in(first.url, said=report(uid="a"))
    until(stream, lambda s: s.connected and s.workers[0].ready)
    first.stop()
    lost = until(stream, lambda s: not s.connected)
    assert states(lost) == ["ready", "unknown"], "the last picture stays"
    assert lost.error
    second = serve(port=first.port)
    assert states(until(stream, lambda s: s.connected)) == ["ready", "unknown"]
    second.observe(view(2, {0: Pod("running", "a", "10.0.0.1")}))
    check_in(second.url, index=1)
    assert states(until(stream, lambda s: s.workers[1].ready)) == ["ready", "ready"]
    second.observe(view(2, {0: Pod("failed", "a", reason="exit code 1")}))
    assert until(stream, lambda s: not s.workers[0].ready).workers[0].reason == "exit code 1"


def test_a_restarted_server_takes_back_a_worker_that_is_another_now(serve: Serve, jobs: Jobs, listen: Listen) -> None:
    first = serve()
    stream = listen(first.url)
    check_in(first.url, said=report(uid="a"))
    until(stream, lambda s: s.connected and s.workers[0].ready)
    first.stop()
    jobs.views[JOB] = view(2, {0: Pod("running", "b")})
    serve(port=first.port)
    assert until(stream, lambda s: s.connected and s.workers[0].uid == "b").workers[0].state == "running"


def test_a_worker_posts_until_its_server_is_there(serve: Serve, listen: Listen) -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    posted: list[Posted] = []
    worker = threading.Thread(target=lambda: posted.append(check_in(f"http://127.0.0.1:{port}")))
    stream = listen(f"http://127.0.0.1:{port}")
    worker.start()
    until(stream, lambda s: "refused" in s.error)
    serve(port=port)
    worker.join(PATIENCE)
    assert posted[0].accepted == (f"127.0.0.1:{port}",)
    until(stream, lambda s: s.connected and s.workers[0].ready)


def test_every_replica_receives_the_report_and_any_one_serves_the_launcher(serve: Serve, listen: Listen) -> None:
    one, two = serve(), serve(host="127.0.0.2")
    told = check_in(one.url, two.url)
    assert set(told.accepted) == {f"127.0.0.1:{one.port}", f"127.0.0.2:{two.port}"}
    for served in (one, two):
        assert states(until(listen(served.url), lambda s: s.connected)) == ["ready", "unknown"]


def test_a_stream_moves_to_the_replica_that_is_left(serve: Serve, listen: Listen) -> None:
    one, two = serve(), serve(host="127.0.0.2")
    stream = listen(one.url, two.url)
    until(stream, lambda s: s.connected)
    chosen, other = (one, two) if one.connections() else (two, one)
    eventually(lambda: chosen.connections() == 1 and other.connections() == 0)
    chosen.stop()
    check_in(other.url, index=1)
    until(stream, lambda s: s.connected and s.workers[1].ready)


def test_a_replica_that_does_not_answer_delays_no_other(served: Served, listen: Listen) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        with socket.create_connection(deaf.getsockname()):  # its queue is full now: further ones hang
            url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
            stream = listen(url, served.url)
            until(stream, lambda s: s.connected)
            told = check_in(url, served.url, within=0.5)
            assert told.accepted == (f"127.0.0.1:{served.port}",)
            assert len(told.failures) == 1
            until(stream, lambda s: s.workers[0].ready)


def test_a_job_that_the_server_does_not_know_yet_is_asked_for_again(serve: Serve, jobs: Jobs, listen: Listen) -> None:
    known = jobs.credentials_of.pop(JOB)
    served = serve()
    stream = listen(served.url)
    until(stream, lambda s: "403 no such job" in s.error)
    jobs.credentials_of[JOB] = known
    until(stream, lambda s: s.connected)


def test_a_job_of_the_same_name_starts_with_an_empty_picture(served: Served, jobs: Jobs, listen: Listen) -> None:
    former = listen(served.url)
    check_in(served.url)
    until(former, lambda s: s.connected and s.workers[0].ready)
    jobs.add(JOB, "another", size=2, uid="u2")
    assert states(until(listen(served.url, token="another"), lambda s: s.connected)) == ["unknown", "unknown"]
    until(former, lambda s: not s.connected and "403" in s.error)


def test_a_forgotten_job_ends_its_streams(served: Served, jobs: Jobs, listen: Listen) -> None:
    stream = listen(served.url)
    until(stream, lambda s: s.connected)
    jobs.credentials_of.clear()
    served.call(lambda: served.server.forget(JOB))
    until(stream, lambda s: not s.connected and "403" in s.error)


def test_an_authority_in_trouble_is_asked_again(served: Served, jobs: Jobs, listen: Listen) -> None:
    jobs.broken = True
    stream = listen(served.url)
    until(stream, lambda s: "503 cannot look up the job now (RuntimeError)" in s.error)
    jobs.broken = False
    until(stream, lambda s: s.connected)


def test_workers_that_arrive_together_ask_the_authority_once(serve: Serve, jobs: Jobs) -> None:
    jobs.add(JOB, TOKEN, size=50)
    jobs.answering.clear()
    served = serve()
    workers = [threading.Thread(target=check_in, args=(served.url,), kwargs={"index": i}) for i in range(50)]
    for worker in workers:
        worker.start()
    eventually(lambda: served.connections() == 50)
    jobs.answering.set()
    for worker in workers:
        worker.join(PATIENCE)
    assert jobs.asked == [JOB]


def test_a_name_that_does_not_resolve_is_reported(listen: Listen) -> None:
    stream = listen("http://no-such-name.invalid:8090")
    assert "no-such-name.invalid" in until(stream, lambda s: bool(s.error) and s.error != "not connected yet").error
    told = check_in("http://no-such-name.invalid:8090", within=0.1)
    assert not told.accepted
    assert "no-such-name.invalid" in told.failures[0]


def test_a_peer_that_is_no_check_in_server_is_reported(listen: Listen) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        stream = listen(f"http://127.0.0.1:{other.getsockname()[1]}")
        connection, _ = other.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(b"SSH-2.0-OpenSSH_10.0\r\n\r\n")
            until(stream, lambda s: "not HTTP" in s.error)


def test_a_malformed_target_is_the_caller_s_error_at_once() -> None:
    with pytest.raises(WireError):
        Stream(["checkin:8090"], JOB, TOKEN)
    with pytest.raises(WireError):
        check_in("http://a", token="line\nfeed")


def test_a_closed_stream_leaves_nothing_behind(served: Served, listen: Listen) -> None:
    stream = listen(served.url)
    until(stream, lambda s: s.connected)
    stream.close()
    eventually(lambda: served.connections() == 0)
    assert not stream._thread.is_alive()


def test_the_client_imports_little() -> None:
    command = [sys.executable, "-c", "import sys, mpiboot.checkin.client; print(*sys.modules)"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert not set(loaded) & {"asyncio", "http", "urllib.request", "ssl", "logging", "dataclasses", "inspect", "email"}
