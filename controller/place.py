"""Under which addresses pods reach this process."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from mpiboot.controller.settings import Settings


def checkin_urls(settings: Settings, server: str, namespace: str) -> tuple[str, ...]:
    """The bases of the check-in service. The address comes first, as it needs no DNS; the Service outlives us."""
    if not settings.checkin_port:
        return ()
    if settings.checkin_urls:
        return tuple(settings.checkin_urls.split())
    port = settings.checkin_port
    address = os.environ.get("POD_IP") or own_address(server)
    urls = [f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"] if address else []
    if settings.checkin_service:
        urls.append(f"http://{settings.checkin_service}.{namespace}.svc:{port}")
    return tuple(urls)


def own_address(server: str) -> str:
    """The address of this machine on the way to the API server; empty if that is the machine itself."""
    parts = urlsplit(server)
    try:
        family, kind, _, _, to = socket.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(to)  # of a datagram socket: nothing is sent
            address = str(probe.getsockname()[0])
    except OSError:
        return ""
    return "" if address.startswith("127.") or address == "::1" else address
