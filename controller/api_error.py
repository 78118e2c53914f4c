"""What an API server, or the way to it, answers instead of an object."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


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
        """Somebody else wrote the object since we read it."""
        return self.status == 409 and self.reason != "AlreadyExists"

    @property
    def expired(self) -> bool:
        """The version asked for is no longer kept: list again."""
        return self.status == 410

    @property
    def throttled(self) -> bool:
        return self.status == 429

    @property
    def going_away(self) -> bool:
        """The namespace is being deleted: nothing can be created in it, and nothing needs to be."""
        return self.status == 403 and "because it is being terminated" in str(self)


class UnreachableError(Exception):
    """No answer: refused, cut off, or out of time."""


class TroubleError(Exception):
    """A job cannot go on for now, for a reason that its user can read in its status and events.

    `event` is the event's reason; without one the trouble is expected to pass by itself.
    """

    event = ""


def from_status(status: Mapping[str, Any]) -> ApiError:
    """The error that a `Status` object tells. Messages are cut short: they may hold what somebody tried to store."""
    after = (status.get("details") or {}).get("retryAfterSeconds")
    message = str(status.get("message") or "")[:1000]
    return ApiError(int(status.get("code") or 500), str(status.get("reason") or ""), message, retry_after=after)


def from_answer(code: int, body: bytes, retry_after: str | None) -> ApiError:
    """The error in an answer's body, which need not come from an API server: a proxy may have sent it."""
    try:
        status = json.loads(body)
    except ValueError:
        status = None
    if not isinstance(status, dict):
        status = {"message": body[:200].decode(errors="replace") or f"HTTP {code}"}
    error = from_status({**status, "code": code})
    if retry_after and retry_after.isdigit():
        error.retry_after = float(retry_after)
    return error
