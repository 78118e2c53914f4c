"""Whether a process listens on a port. Reads the kernel's table: sshd would log a connection."""

from __future__ import annotations

import sys

_LISTEN = "0A"


def on(port: int, address: str = "") -> bool:
    """True if a socket listens on the port, at `address` (IPv4; empty: any) or at all addresses."""
    wanted = {f"{port:04X}"}
    places = {"0" * 8, "0" * 32, _hex(address)} if address and ":" not in address else None
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table, encoding="ascii") as file:
                next(file, None)
                for line in file:
                    _, local, _, state, _ = line.split(maxsplit=4)
                    place, _, number = local.partition(":")
                    if state == _LISTEN and number in wanted and (places is None or place in places):
                        return True
        except OSError:  # a kernel without IPv6
            continue
    return False


def _hex(address: str) -> str:
    """127.0.1.2 in the form of the table: one number in the machine's byte order."""
    number = bytes(int(part) for part in address.split("."))
    return f"{int.from_bytes(number, sys.byteorder):08X}"
