"""The messages: a worker's report, and the lines of a launcher's stream. Pure text and values; no I/O."""

# Named tuples, not dataclasses: those import `inspect`, and this is read at the start of process 1.
from __future__ import annotations

import json
import re
from socket import AF_INET, AF_INET6, inet_pton
from typing import Any, Literal, NamedTuple, cast, get_args

BEAT_EVERY = 15.0  # seconds between signs of life on a stream
MAX_BODY = 4096  # bytes of a report; a real one has under 300
MAX_LINE = 64 * 1024 * 1024  # bytes of one line of a stream; 1,000 workers take about 200 kB

State = Literal["ready", "running", "pending", "failed", "unknown"]

# These go into an ssh configuration, so nothing that could end a line or a word gets through.
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252})")
_USER = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,62}\$?)")
_ID = re.compile(r"[A-Za-z0-9._:-]{0,64}")
_MAX_REASON = 500


class MessageError(ValueError):
    """The text is not a message of this protocol. The error names the field and the reason."""


class Report(NamedTuple):
    """A worker's report that its sshd accepts connections.

    `uid` names the pod, `start` this start of its worker process: either one changes when the worker restarted.
    """

    address: str
    port: int
    user: str
    uid: str = ""
    start: str = ""


class Attempt(NamedTuple):
    """A launcher's report that its command failed and will run again. `launch` names the launcher.

    `text` is the line of its log: the number of the attempt, how long it ran, and why it ended.
    """

    launch: str
    number: int
    text: str


class WorkerState(NamedTuple):
    """One worker as the server sees it.

    ready: it checked in. running: its container runs, and it has not checked in (`address` may be known: probe it).
    pending: its container does not run yet, `reason` says why. failed: it ended, `reason` says how.
    unknown: the server knows nothing about it, for example just after its own start.
    """

    name: str
    index: int  # type: ignore[assignment]  # hides tuple.index, which is not used here
    state: State
    address: str = ""
    port: int = 0
    user: str = ""
    uid: str = ""
    reason: str = ""
    start: str = ""

    @property
    def ready(self) -> bool:
        return self.state == "ready"


class Line(NamedTuple):
    """One line of a stream. A snapshot replaces all that was known; an update holds the changed workers only."""

    kind: Literal["snapshot", "update", "beat"]
    workers: tuple[WorkerState, ...] = ()


def form_report(report: Report) -> bytes:
    return _dump(report._asdict())


def form_attempt(attempt: Attempt) -> bytes:
    return _dump(attempt._asdict())


def parse_attempt(body: bytes) -> Attempt:
    """The attempt in a request's body; `MessageError` names the first bad field."""
    fields = _load(body)
    attempt = Attempt(_text(fields, "launch"), _number(fields, "number", 1, 10**9), one_line(_text(fields, "text")))
    if not _ID.fullmatch(attempt.launch):
        raise MessageError("launch: must be at most 64 letters, digits, '.', '_', ':' or '-'")
    return attempt


def parse_report(body: bytes) -> Report:
    """The report in a request's body; `MessageError` names the first bad field."""
    fields = _load(body)
    report = Report(
        address=_text(fields, "address"),
        port=_number(fields, "port", 1, 65535),
        user=_text(fields, "user"),
        uid=_text(fields, "uid", ""),
        start=_text(fields, "start", ""),
    )
    _check_place(report.address, report.user, report.uid, report.start)
    return report


def form_line(line: Line) -> bytes:
    """The line with its line feed. Empty fields are left out."""
    message: dict[str, object] = {"type": line.kind}
    if line.kind != "beat":
        message["workers"] = [{k: v for k, v in w._asdict().items() if v or k == "index"} for w in line.workers]
    return _dump(message) + b"\n"


def parse_line(text: bytes) -> Line | None:
    """The line, or None for a type that a later version of the protocol may add."""
    fields = _load(text)
    kind = _text(fields, "type")
    if kind == "beat":
        return Line("beat")
    if kind not in ("snapshot", "update"):
        return None
    workers = fields.get("workers")
    if not isinstance(workers, list):
        raise MessageError("workers: must be a list")
    return Line(cast(Literal["snapshot", "update"], kind), tuple(_parse_worker(worker) for worker in workers))


def _parse_worker(fields: object) -> WorkerState:
    if not isinstance(fields, dict):
        raise MessageError("workers: must hold objects")
    state = _text(fields, "state")
    if state not in get_args(State):
        state = "unknown"  # of a later version; knowing less is always safe
    worker = WorkerState(
        name=_text(fields, "name"),
        index=_number(fields, "index", 0, 10**6),
        state=cast(State, state),
        address=_text(fields, "address", ""),
        port=_number(fields, "port", 0, 65535, 0),
        user=_text(fields, "user", ""),
        uid=_text(fields, "uid", ""),
        reason=one_line(_text(fields, "reason", "")),
        start=_text(fields, "start", ""),
    )
    if not _NAME.fullmatch(worker.name):
        raise MessageError("name: not a host name")
    if worker.ready and not (worker.address and worker.port):
        raise MessageError("address: missing for a worker that is ready")
    _check_place(worker.address or "::", worker.user or "x", worker.uid, worker.start)
    return worker


def one_line(text: str) -> str:
    """The text without control characters and not too long: fit for a log and a terminal."""
    return "".join(c if c.isprintable() else " " for c in text)[:_MAX_REASON]


def _check_place(address: str, user: str, uid: str, start: str) -> None:
    if not _is_address(address):
        raise MessageError("address: must be an IP address")
    if not _USER.fullmatch(user):
        raise MessageError("user: must be a plain user name")
    if not _ID.fullmatch(uid):
        raise MessageError("uid: must be at most 64 letters, digits, '.', '_', ':' or '-'")
    if not _ID.fullmatch(start):
        raise MessageError("start: must be at most 64 letters, digits, '.', '_', ':' or '-'")


def _is_address(text: str) -> bool:
    try:
        inet_pton(AF_INET6 if ":" in text else AF_INET, text)
    except (OSError, ValueError):  # ValueError: a null character
        return False
    return True


def _load(text: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        raise MessageError("not JSON") from None
    if not isinstance(fields, dict):
        raise MessageError("must be a JSON object")
    return fields


def _dump(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def _text(fields: dict[str, Any], key: str, default: str | None = None) -> str:
    value = fields.get(key, default)
    if not isinstance(value, str):
        raise MessageError(f"{key}: must be a string")
    return value


def _number(fields: dict[str, Any], key: str, low: int, high: int, default: int | None = None) -> int:
    value = fields.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise MessageError(f"{key}: must be a number from {low} to {high}")
    return value
