"""Which network interface leads to a worker."""

# Hydra tells its daemons where to call back by this host's name, which in a fresh pod nothing resolves for a second or
# two; told an interface, it sends an address.
from __future__ import annotations

import fcntl
import socket
import struct

_GET_ADDRESS = 0x8915  # SIOCGIFADDR


def towards(address: str) -> str:
    """The interface from which packets to this address leave; empty if there is no telling."""
    own = _own_address(address)
    if not own:
        return ""
    if ":" in own:
        return _of_ipv6(own)
    if own.startswith("127."):
        return "lo"
    for _, name in socket.if_nameindex():
        if _ipv4(name) == own:
            return name
    return ""


def _own_address(towards: str) -> str:
    family = socket.AF_INET6 if ":" in towards else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.connect((towards, 9))  # UDP: finds the route and sends nothing
            return str(sock.getsockname()[0])
    except OSError:
        return ""


def _ipv4(name: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            answer = fcntl.ioctl(sock, _GET_ADDRESS, struct.pack("256s", name.encode()[:15]))
        except OSError:
            return ""
    return socket.inet_ntoa(answer[20:24])


def _of_ipv6(own: str) -> str:
    wanted = socket.inet_pton(socket.AF_INET6, own.partition("%")[0]).hex()
    try:
        with open("/proc/net/if_inet6", encoding="ascii") as file:
            return next((line.split()[-1] for line in file if line.startswith(wanted)), "")
    except OSError:
        return ""
