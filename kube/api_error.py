"""What an API server, or the way to it, answers instead of an object."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mpiboot.job.values import natural

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_RETRY_AFTER = 60.0  # seconds; a server that asks for more is asked again sooner


class ApiError(Exception):
    """A request that was refused. `status` is HTTP's, `reason` the API's own word for it, such as `AlreadyExists`."""

    def __init__(self, status: int, reason: str, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.retry_after = retry_after

    @property
    def not_found(self) -> bool:
        return self.status == 404

    @property
    def already_exists(self) -> bool:
        return self.status == 409 and self.reason == "AlreadyExists"

    @property
    def conflict(self) -> bool:
        """Another client wrote the object since we read it."""
        return self.status == 409 and self.reason != "AlreadyExists"

    @property
    def throttled(self) -> bool:
        return self.status == 429

    @property
    def passing(self) -> bool:
        """The server, or a proxy before it, is busy or broken: the same request may succeed later."""
        return self.throttled or self.status >= 500

    @property
    def going_away(self) -> bool:
        """The namespace is being deleted: nothing can be created in it, and nothing needs to be."""
        return self.status == 403 and "because it is being terminated" in str(self)


class UnreachableError(Exception):
    """No answer of an API server: refused, cut off, out of time, or from something that is none.

    `sent` is false if the request has surely not arrived.
    """

    sent = True


class NotLeadingError(UnreachableError):
    """No request was sent: another replica may lead by now."""

    sent = False

    def __init__(self) -> None:
        super().__init__("this replica does not lead")


class TooLargeError(UnreachableError):
    """An answer that is larger than the client reads."""


class TroubleError(Exception):
    """A job cannot go on for now, for a reason that its user can read in its status and events.

    `event` is the event's reason; without one the trouble is expected to pass by itself.
    """

    event = ""
    retry_after: float | None = None  # seconds that the server asks us to wait


def from_status(status: Mapping[str, Any]) -> ApiError:
    """The error in a `Status` object. Messages are cut short: they may hold what a client tried to store."""
    details, code = status.get("details"), status.get("code")
    after = details.get("retryAfterSeconds") if isinstance(details, dict) else None
    return ApiError(
        code if isinstance(code, int) and code else 500,
        str(status.get("reason") or "")[:100],
        str(status.get("message") or "")[:1000],
        retry_after=min(float(after), LONGEST_RETRY_AFTER) if isinstance(after, int) and after >= 0 else None,
    )


def from_answer(code: int, body: bytes, retry_after: str | None) -> ApiError:
    """The error in an answer's body, which need not come from an API server: a proxy may have sent it."""
    try:
        status = json.loads(body)
    except (ValueError, RecursionError):
        status = None
    if not isinstance(status, dict):
        status = {"message": body[:200].decode(errors="replace") or f"HTTP {code}"}
    error = from_status({**status, "code": code})
    if retry_after and (seconds := natural(retry_after)) is not None:
        error.retry_after = min(float(seconds), LONGEST_RETRY_AFTER)
    return error
