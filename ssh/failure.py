"""Why a host is not ready, as one of few classes. Users read their names."""

from __future__ import annotations

import errno
from enum import Enum
from typing import NamedTuple


class Kind(Enum):
    """The classes, in the order in which a start passes them."""

    DNS = "DNS"
    REFUSED = "connection refused"
    UNREACHABLE = "unreachable"
    TIMED_OUT = "timed out"
    NOT_SSH = "not SSH"
    HOST_KEY = "host key"
    AUTHENTICATION = "authentication"


class Failure(NamedTuple):
    """A class, and the text of the last error."""

    kind: Kind
    detail: str = ""

    def __str__(self) -> str:
        if not self.detail or self.detail.lower() == self.kind.value:
            return self.kind.value
        return f"{self.kind.value}: {self.detail}"


_UNREACHABLE = frozenset({
    errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN, errno.EACCES, errno.EPERM,
    errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EINVAL, errno.ENONET,
})  # fmt: skip


def of_errno(number: int, text: str) -> Failure:
    """The class of a socket error."""
    if number == errno.ECONNREFUSED:
        return Failure(Kind.REFUSED)
    if number == errno.ETIMEDOUT:
        return Failure(Kind.TIMED_OUT, "no answer to the connection")
    if number in _UNREACHABLE:
        return Failure(Kind.UNREACHABLE, text)
    if number in (errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED):
        return Failure(Kind.NOT_SSH, "closed the connection before its SSH banner")
    return Failure(Kind.UNREACHABLE, text)
