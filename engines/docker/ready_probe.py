"""The probe of a worker: a program that succeeds inside its container once it is ready. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiboot.job.plan import sshd

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Lines of /proc/net/tcp: `sl LOCAL_ADDRESS:PORT REMOTE STATE ...` in hexadecimal; 0A is LISTEN. In a container on a
# network of its own there is always one socket at 127.0.0.11: Docker's name server.
LISTENS = (
    "for table in /proc/net/tcp /proc/net/tcp6; do "
    '[ -r "$table" ] && while read -r _ local _ state _; do '
    'case "$state $local" in "0A 0B00007F:"*) ;; "0A "*:{port}) exit 0 ;; esac; done <"$table"; '
    "done; exit 1"
)


@dataclass(frozen=True)
class Ready:
    """A command that succeeds when the container is ready, and the text for when it is not."""

    command: Sequence[str]
    what: str


def ready(container: Mapping[str, Any], ignored: list[str]) -> Ready:
    """The container's own probe; without one, whether any program listens on a port."""
    for probe in ("startupProbe", "readinessProbe"):
        given = container.get(probe) or {}
        if "tcpSocket" in given:
            port = _number(given["tcpSocket"].get("port"), container)
            return _listens(f"{port:04X}", f"nothing listens on port {port}")
        if "exec" in given:
            command = given["exec"].get("command") or ["true"]
            if sshd.LISTENS in command:
                break
            return Ready([str(word) for word in command], f"its {probe} does not succeed")
        if given:
            ignored.append(probe)
    return _listens("*", "nothing listens on any port")


def _listens(port: str, what: str) -> Ready:
    return Ready(["sh", "-c", LISTENS.format(port=port)], what)


def _number(port: object, container: Mapping[str, Any]) -> int:
    """A port's number; probes may call it by the name that `ports` gives it."""
    named = {one.get("name"): one.get("containerPort") for one in container.get("ports") or ()}
    value = str(named.get(port, port))
    return int(value) if value.isdigit() else 2222
