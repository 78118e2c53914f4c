"""The little of HTTP that is spoken, and the much that is not."""

from __future__ import annotations

import pytest

from mpiboot.checkin import wire
from mpiboot.checkin.wire import Base, Request, WireError


def parsed(text: bytes) -> Request:
    return wire.parse_request(text.partition(wire.END_OF_HEAD)[0])


def test_a_request_survives_the_journey() -> None:
    text = wire.form_request("POST", wire.worker_path("default/pi", 3), "server", "t0ken", b"{}")
    assert parsed(text) == Request("POST", "/v1/jobs/default/pi/workers/3", "t0ken", 2, expects_continue=False)
    assert text.endswith(b"\r\n\r\n{}")


def test_header_names_and_schemes_have_no_case() -> None:
    head = b"GET / HTTP/1.1\r\nAUTHORIZATION: bearer  t\r\nexpect: 100-Continue\r\ncontent-LENGTH: 5"
    assert parsed(head) == Request("GET", "/", "t", 5, expects_continue=True)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"", 400),
        (b"hello", 400),
        (b"SSH-2.0-OpenSSH_10.0", 400),
        (b"\x16\x03\x01\x02", 400),
        (b"GET / HTTP/2", 505),
        (b"PRI * HTTP/2.0", 505),
        (b"GET / HTTP/1.1\r\nno colon", 400),
        (b"GET / HTTP/1.1\r\nName : value", 400),
        (b"GET / HTTP/1.1\r\n folded: value", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: -1", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 1e9", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: \xb2", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2", 400),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked", 411),
    ],
)
def test_a_request_that_could_be_misread_is_refused(head: bytes, status: int) -> None:
    with pytest.raises(WireError) as refused:
        wire.parse_request(head)
    assert refused.value.status == status


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/v1/jobs/default/pi/workers/0", ("default/pi", 0)),
        ("/v1/jobs/default/pi/workers/999999", ("default/pi", 999999)),
        ("/v1/jobs/default/pi/workers/-1", None),
        ("/v1/jobs/default/pi/workers/1000000", None),
        ("/v1/jobs/default/pi/workers/", None),
        ("/v1/jobs/default/pi/workers/0/", None),
        ("/v1/jobs/default/workers/0", None),
        ("/v1/jobs/../pi/workers/0", None),
        ("/v1/jobs/Default/pi/workers/0", None),
        ("/v1/jobs/default/pi/workers/0\n", None),
        ("/v1/jobs/default/" + "p" * 300 + "/workers/0", None),
    ],
)
def test_worker_paths(path: str, target: object) -> None:
    assert wire.parse_worker_path(path) == target


def test_stream_paths() -> None:
    assert wire.parse_stream_path(wire.stream_path("default/pi.v2")) == "default/pi.v2"
    assert wire.parse_stream_path("/v1/jobs/default/pi/streams") is None


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://checkin.mpiboot.svc.cluster.local.:8090", Base("checkin.mpiboot.svc.cluster.local.", 8090)),
        ("http://10.0.0.1/", Base("10.0.0.1", 80)),
        ("http://[fd00::1]:8090", Base("fd00::1", 8090)),
    ],
)
def test_server_addresses(url: str, base: Base) -> None:
    assert wire.parse_base(url) == base


@pytest.mark.parametrize(
    "url", ["", "checkin:8090", "https://checkin", "http://", "http://a:0", "http://a:65536", "http://a/b"]
)
def test_bad_server_addresses_are_named(url: str) -> None:
    with pytest.raises(WireError, match="must read http://HOST:PORT"):
        wire.parse_base(url)


@pytest.mark.parametrize(
    ("job", "token"), [("pi", "t"), ("default/pi\r\n", "t"), ("default/pi", "t\n"), ("default/pi", "")]
)
def test_what_would_break_a_request_never_gets_into_one(job: str, token: str) -> None:
    with pytest.raises(WireError):
        wire.check_target(["http://a"], job, token)


def test_an_answer_tells_its_length_and_closes() -> None:
    assert wire.form_answer(403, "no") == (
        b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 3\r\n"
        b"Connection: close\r\n\r\nno\n"
    )
    assert b"Content-Length" not in wire.form_answer(204)


@pytest.mark.parametrize("head", [b"", b"SSH-2.0-x\r\n", b"HTTP/2 200\r\n", b"HTTP/1.1 2000 \r\n", b"HTTP/1.1 099 \r"])
def test_an_answer_in_another_language_is_refused(head: bytes) -> None:
    with pytest.raises(WireError):
        wire.parse_status(head)
