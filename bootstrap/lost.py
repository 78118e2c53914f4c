"""Whether a worker of a running job was lost, as the check-in stream tells. Pure."""

# Open MPI's own keepalive needs minutes to notice that.
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.bootstrap.host import Host
    from mpiboot.bootstrap.picture import Picture

# mpirun may notice by itself and say more about it.
MPIRUN_HAS = 10.0


def uids(picture: Picture) -> dict[str, str]:
    """Which pod stands behind each worker that is ready."""
    return {host.name: host.uid for host in picture.ready()}


def first(picture: Picture, began_with: Mapping[str, str]) -> str:
    """Why the job cannot end well any more; empty as long as it can."""
    for name, uid in began_with.items():
        host = picture.hosts.get(name)
        cause = _cause(host, uid) if host is not None else ""
        if cause:
            return f"worker {name} was lost while the job ran: {cause}"
    return ""


def _cause(host: Host, uid: str) -> str:
    state = host.state
    if state is None:
        return ""
    if state.state == "failed":
        return state.reason or "its container ended"
    if uid and state.uid and state.uid != uid:
        return f"its pod was replaced{f' ({state.reason})' if state.reason else ''}"
    return ""
