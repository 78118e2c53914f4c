"""The part of HTTP/1.1 that both sides use, as pure functions over bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_HEAD = 8192  # bytes of a request's or an answer's head
END_OF_HEAD = b"\r\n\r\n"

REASONS = {
    200: "OK",
    204: "No Content",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    409: "Conflict",
    411: "Length Required",
    413: "Content Too Large",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}

_URL = re.compile(r"http://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?/?")
_JOB = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?/[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?"
_JOB_NAME = re.compile(_JOB)
_WORKER = re.compile(rf"/v1/jobs/({_JOB})/workers/([0-9]{{1,6}})")
_ATTEMPTS = re.compile(rf"/v1/jobs/({_JOB})/attempts")
_STREAM = re.compile(rf"/v1/jobs/({_JOB})/stream")


class WireError(ValueError):
    """The other side breaks the protocol. `status` is what a server answers."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Request(NamedTuple):
    """A request's head. `length` is None where the client gave no Content-Length."""

    method: str
    path: str
    token: str
    length: int | None
    expects_continue: bool


class Base(NamedTuple):
    """Where a server is: from `http://HOST[:PORT]`."""

    host: str
    port: int


def parse_base(url: str) -> Base:
    match = _URL.fullmatch(url)
    port = int(match[2] or 80) if match else 0
    if not match or not 0 < port < 65536:
        raise WireError(400, f"check-in address {url!r}: must read http://HOST:PORT")
    return Base(match[1].strip("[]"), port)


def check_target(urls: Iterable[str], job: str, token: str) -> None:
    """Raise WireError for what a request cannot carry: better at once than in a thread that retries."""
    for url in urls:
        parse_base(url)
    if not _JOB_NAME.fullmatch(job):
        raise WireError(400, f"job {job!r}: must read NAMESPACE/NAME")
    if not re.fullmatch(r"[!-~]+", token):
        raise WireError(400, "the check-in token is empty or holds other characters than visible ASCII")


def worker_path(job: str, index: int) -> str:
    return f"/v1/jobs/{job}/workers/{index}"


def attempts_path(job: str) -> str:
    return f"/v1/jobs/{job}/attempts"


def stream_path(job: str) -> str:
    return f"/v1/jobs/{job}/stream"


def parse_worker_path(path: str) -> tuple[str, int] | None:
    match = _WORKER.fullmatch(path)
    return (match[1], int(match[2])) if match else None


def parse_attempts_path(path: str) -> str | None:
    match = _ATTEMPTS.fullmatch(path)
    return match[1] if match else None


def parse_stream_path(path: str) -> str | None:
    match = _STREAM.fullmatch(path)
    return match[1] if match else None


def form_request(method: str, path: str, host: str, token: str, body: bytes = b"") -> bytes:
    length = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if method == "POST" else ""
    name = f"[{host}]" if ":" in host else host.rstrip(".")
    return f"{method} {path} HTTP/1.1\r\nHost: {name}\r\nAuthorization: Bearer {token}\r\n{length}\r\n".encode() + body


def parse_request(head: bytes) -> Request:
    """The request whose head, without its empty line, this is."""
    line, *fields = head.decode("latin-1").split("\r\n")
    words = line.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/"):
        raise WireError(400, "not an HTTP request")
    if not words[2].startswith("HTTP/1."):
        raise WireError(505, "this server knows only HTTP/1.1")
    headers = _headers(fields)
    if "transfer-encoding" in headers:
        raise WireError(411, "a body needs a Content-Length")
    length = headers.get("content-length")
    if length is not None and not re.fullmatch(r"[0-9]{1,18}", length):
        raise WireError(400, "Content-Length is not a number")
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return Request(
        method=words[0],
        path=words[1],
        token=token.strip() if scheme.lower() == "bearer" else "",
        length=None if length is None else int(length),
        expects_continue=headers.get("expect", "").lower() == "100-continue",
    )


def _headers(fields: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for field in fields:
        name, colon, value = field.partition(":")
        if not colon or not name or name != name.strip():
            raise WireError(400, "a malformed header")
        if name.lower() in headers and name.lower() in ("content-length", "authorization"):
            raise WireError(400, f"{name} is given twice")
        headers[name.lower()] = value.strip()
    return headers


def form_answer(status: int, text: str = "") -> bytes:
    """A whole answer. Every connection carries one request, so it always closes."""
    body = f"{text}\n".encode() if text else b""
    kind = "Content-Type: text/plain; charset=utf-8\r\n" if body else ""
    length = "" if status == 204 else f"Content-Length: {len(body)}\r\n"
    return f"HTTP/1.1 {status} {REASONS[status]}\r\n{kind}{length}Connection: close\r\n\r\n".encode() + body


STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
)


def parse_status(head: bytes) -> int:
    """The status of an answer whose head begins like this."""
    match = re.match(rb"HTTP/1\.[01] ([1-5][0-9][0-9])[ \r]", head)
    if not match:
        raise WireError(400, "the answer is not HTTP")
    return int(match[1])
