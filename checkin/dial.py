"""A connection to the address that answers first, and one exchange over it. Plain sockets: imports stay cheap."""

from __future__ import annotations

import os
import select
import socket
import time
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.checkin import wire
from mpiboot.checkin.messages import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


CONNECT_WITHIN = 2.0  # seconds
ANSWER_WITHIN = 5.0


class DialError(OSError):
    """No server answers, or what answers does not speak this protocol. The text is one line."""


class Address(NamedTuple):
    """One address behind a server's name."""

    name: str
    ip: str
    port: int

    def __str__(self) -> str:
        return f"[{self.ip}]:{self.port}" if ":" in self.ip else f"{self.ip}:{self.port}"


def resolve(urls: Iterable[str]) -> list[Address]:
    """Every address behind the urls; a name that does not resolve is an error only if none does."""
    found: dict[Address, None] = {}
    errors = []
    for url in urls:
        base = wire.parse_base(url)
        try:
            answers = socket.getaddrinfo(base.host, base.port, type=socket.SOCK_STREAM)
        except OSError as error:
            errors.append(f"{base.host}: {error.strerror or error}")
            continue
        found |= {Address(base.host, str(place[0]), base.port): None for *_, place in answers}
    if not found:
        raise DialError("; ".join(errors) or "no check-in address given")
    return list(found)


def connect(addresses: Sequence[Address], within: float) -> tuple[Address, socket.socket]:
    """The first connection that succeeds. All are tried at once: a dead replica costs no time while another lives."""
    waiting: dict[int, tuple[Address, socket.socket]] = {}
    errors: list[str] = []
    poll = select.poll()
    try:
        for address in addresses:
            sock = _dial(address, errors)
            if sock:
                waiting[sock.fileno()] = (address, sock)
                poll.register(sock, select.POLLOUT)
        end = time.monotonic() + within
        while waiting:
            ready = poll.poll(max(0.0, end - time.monotonic()) * 1000)
            if not ready:
                errors += [f"{address}: no answer within {within:.1f} s" for address, _ in waiting.values()]
                break
            for fd, _ in ready:
                address, sock = waiting.pop(fd)
                poll.unregister(fd)
                problem = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if not problem:
                    return address, sock
                errors.append(f"{address}: {os.strerror(problem)}")
                sock.close()
    finally:
        for _, sock in waiting.values():
            sock.close()
    raise DialError("; ".join(errors))


def _dial(address: Address, errors: list[str]) -> socket.socket | None:
    sock = socket.socket(socket.AF_INET6 if ":" in address.ip else socket.AF_INET)
    sock.settimeout(0)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        sock.connect((address.ip, address.port))
    except BlockingIOError:
        pass
    except OSError as error:
        errors.append(f"{address}: {error.strerror}")
        sock.close()
        return None
    return sock


def exchange(sock: socket.socket, request: bytes) -> tuple[int, str]:
    """The status and the text of the answer; the socket's own time-out holds for each step."""
    try:
        sock.sendall(request)
        status, text = read_head(sock)
    except TimeoutError:
        raise DialError("no answer in time") from None
    except wire.WireError as error:
        raise DialError(str(error)) from None
    except OSError as error:
        raise DialError(error.strerror or str(error)) from None
    return status, one_line(text.decode("utf-8", "replace")).strip()


def read_head(sock: socket.socket) -> tuple[int, bytes]:
    """The status of the answer, and what came after its head."""
    data = b""
    while wire.END_OF_HEAD not in data:
        more = sock.recv(65536)
        if not more:
            raise DialError("the server closed the connection without an answer")
        data += more
        if len(data) > wire.MAX_HEAD + 65536:
            raise DialError("the answer has no end of head")
    head, _, rest = data.partition(wire.END_OF_HEAD)
    return wire.parse_status(head), rest
