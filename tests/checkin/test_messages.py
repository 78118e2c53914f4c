"""Which messages are accepted, and what the other side reads from them."""

from __future__ import annotations

import json

import pytest

from mpiboot.checkin.messages import (
    Line,
    MessageError,
    Report,
    WorkerState,
    form_line,
    form_report,
    one_line,
    parse_line,
    parse_report,
)
from tests.checkin.conftest import report

GOOD = {"address": "10.0.0.1", "port": 2222, "user": "mpiuser", "uid": "a", "start": "1"}


@pytest.mark.parametrize("said", [report(), report(1, "0f-9", "1:2"), Report("fd00::1", 65535, "u$")])
def test_a_report_survives_the_journey(said: Report) -> None:
    assert parse_report(form_report(said)) == said


def test_a_field_of_a_later_version_is_no_error() -> None:
    assert parse_report(json.dumps({**GOOD, "mood": ["fine"]}).encode()).port == 2222


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("address", "worker-0"),
        ("address", "10.0.0.1\n"),
        ("address", "10.0.0.1\0"),
        ("address", ""),
        ("address", None),
        ("address", "fe80::1%eth0"),
        ("port", 0),
        ("port", 65536),
        ("port", "2222"),
        ("port", True),
        ("port", 22.5),
        ("user", ""),
        ("user", "a b"),
        ("user", "x\nProxyCommand touch /tmp/owned"),
        ("user", "-oProxyCommand"),
        ("user", "u" * 65),
        ("uid", "a b"),
        ("uid", "u" * 65),
        ("start", 1),
    ],
)
def test_what_has_no_place_in_an_ssh_configuration_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(MessageError, match=f"^{field}: must be"):
        parse_report(json.dumps({**GOOD, field: value}).encode())


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 4000, b'"text"'])
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(MessageError):
        parse_report(body)


READY = WorkerState("pi-worker-0", 0, "ready", "10.0.0.1", 2222, "mpiuser", "a", start="1")
PENDING = WorkerState("pi-worker-1", 1, "pending", reason="ImagePullBackOff: no such image")


@pytest.mark.parametrize(
    "line", [Line("beat"), Line("snapshot"), Line("snapshot", (READY, PENDING)), Line("update", (PENDING,))]
)
def test_a_line_survives_the_journey(line: Line) -> None:
    text = form_line(line)
    assert text.endswith(b"\n")
    assert text.count(b"\n") == 1
    assert parse_line(text) == line


def test_a_kind_of_line_of_a_later_version_is_passed_over() -> None:
    assert parse_line(b'{"type":"poem","text":"..."}') is None


def test_a_state_of_a_later_version_is_unknown() -> None:
    line = parse_line(b'{"type":"update","workers":[{"name":"w","index":0,"state":"hibernating"}]}')
    assert line == Line("update", (WorkerState("w", 0, "unknown"),))


@pytest.mark.parametrize(
    "worker",
    [
        {"name": "a b", "index": 0, "state": "unknown"},
        {"name": "w\nHost *", "index": 0, "state": "unknown"},
        {"name": "-w", "index": 0, "state": "unknown"},
        {"name": "w", "index": -1, "state": "unknown"},
        {"name": "w", "index": 0, "state": "ready"},
        {"name": "w", "index": 0, "state": "ready", "address": "evil.example", "port": 22},
        "w",
    ],
)
def test_a_launcher_does_not_trust_its_server_either(worker: object) -> None:
    with pytest.raises(MessageError):
        parse_line(json.dumps({"type": "update", "workers": [worker]}).encode())


def test_a_reason_reaches_the_terminal_as_one_harmless_line() -> None:
    line = parse_line(form_line(Line("update", (PENDING._replace(reason="a\n\x1b[31mb" + "c" * 999),))))
    assert line
    assert line.workers[0].reason.startswith("a  [31mb")
    assert len(line.workers[0].reason) == 500


def test_one_line_keeps_what_people_can_read() -> None:
    assert one_line("naïve\tname\r\n") == "naïve name  "
