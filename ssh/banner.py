"""The cheapest probe of an sshd: one connection, one line read, no login. Never blocks."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from errno import EINPROGRESS

from mpiboot.ssh.failure import Failure, Kind, of_errno

# sshd logs two lines about a client that hangs up before it greets, one about a client that greets.
GREETING = b"SSH-2.0-mpiboot\r\n"
_LONGEST = 16384  # bytes a server may send before its banner (RFC 4253 allows lines of text there)


class Banner:
    """One connection to one address. Wait until `fileno()` is readable, then ask `advance()`; close it in any case."""

    __slots__ = ("_connected", "_read", "_socket")

    def __init__(self, address: str, port: int) -> None:
        """Starts to connect; a failure at once is reported by the first `advance()`."""
        self._socket = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        self._socket.settimeout(0.0)  # never block
        self._read = b""
        self._connected = self._socket.connect_ex((address, port))

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def failed_at_once(self) -> bool:
        return self._connected not in (0, EINPROGRESS)

    @property
    def connected(self) -> bool:
        try:
            self._socket.getpeername()
        except OSError:
            return False
        return True

    def advance(self) -> Failure | bool:
        """True: it is an SSH server. False: wait on. Or the reason why it is none."""
        if self.failed_at_once:
            return of_errno(self._connected, os.strerror(self._connected))
        try:
            data = self._socket.recv(1024)
        except BlockingIOError:
            return False
        except OSError as error:
            return of_errno(error.errno or 0, error.strerror or str(error))
        self._read += data
        for line in self._read.split(b"\n")[:-1]:
            if line.startswith(b"SSH-"):
                return self._greeted(line)
        if data and len(self._read) <= _LONGEST:
            return False
        return Failure(Kind.NOT_SSH, self._said(closed=not data))

    def timed_out(self, seconds: float) -> Failure:
        """The failure to report when the time for this probe is over."""
        if self.connected:
            return Failure(Kind.TIMED_OUT, f"connected, no SSH banner within {seconds:g} s")
        return Failure(Kind.TIMED_OUT, f"no answer to the connection within {seconds:g} s")

    def close(self) -> None:
        self._socket.close()

    def _greeted(self, line: bytes) -> Failure | bool:
        with suppress(OSError):
            self._socket.send(GREETING)
        if line.startswith((b"SSH-2.", b"SSH-1.99-")):
            return True
        return Failure(Kind.NOT_SSH, f"answers with {_printable(line)}")

    def _said(self, *, closed: bool) -> str:
        said = _printable(self._read.split(b"\n")[0])
        if not said:
            return "closed the connection before its SSH banner" if closed else "no SSH banner"
        # Both from sshd itself, which was too busy, or had been asked too often.
        return f"said {said!r}" + (" and closed" if closed else "")


def _printable(data: bytes) -> str:
    text = data.strip()[:80].decode("utf-8", "replace")
    return "".join(c if c.isprintable() else "?" for c in text)
