"""What the engine says about a container, as the state of a process and as events."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

from mpiboot.engines.jobs import JobEvent, Process

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NEVER = "0001-"


def process_of(name: str, container: Mapping[str, Any]) -> Process:
    """The process that a container is."""
    state = container["State"]
    number = str(container["Id"])[:12]
    if state["Status"] == "created":
        return Process(name, "pending", id=number)
    if state["Running"]:
        return Process(name, "running", id=number)
    return Process(name, "ended", exit_code=int(state["ExitCode"]), id=number, reason=_why(state))


def events(containers: Mapping[str, Mapping[str, Any]]) -> list[JobEvent]:
    """What happened to the containers, by time."""
    return sorted((event for name, one in containers.items() for event in _of(name, one)), key=lambda event: event.time)


def _of(name: str, container: Mapping[str, Any]) -> Iterator[JobEvent]:
    state = container["State"]
    yield JobEvent(_seconds(container["Created"]), "Normal", "Created", name)
    if not state["StartedAt"].startswith(NEVER):
        yield JobEvent(_seconds(state["StartedAt"]), "Normal", "Started", name)
    if not state["Running"] and not state["FinishedAt"].startswith(NEVER):
        code = int(state["ExitCode"])
        yield JobEvent(_seconds(state["FinishedAt"]), "Warning" if code else "Normal", "Ended", name,
                       f"{name} ended with exit code {code}{': ' if _why(state) else ''}{_why(state)}")  # fmt: skip


def _why(state: Mapping[str, Any]) -> str:
    return "it needed more memory than its limit allows" if state.get("OOMKilled") else str(state.get("Error") or "")


def _seconds(time: str) -> float:
    """Of an engine's time: it has nanoseconds, which Python does not read."""
    return datetime.fromisoformat(re.sub(r"(\.\d{1,6})\d*", r"\1", time)).timestamp()
