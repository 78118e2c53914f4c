"""The conditions in a job's status, and the rules for their changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Status = dict[str, Any]
Type = Literal["Created", "Running", "Restarting", "Suspended", "Succeeded", "Failed"]

REASONS = {
    "created": "MPIJobCreated",
    "running": "MPIJobRunning",
    "restarting": "MPIJobRestarting",
    "suspended": "MPIJobSuspended",
    "resumed": "MPIJobResumed",
    "succeeded": "MPIJobSucceeded",
    "failed": "MPIJobFailed",
    "evicted": "MPIJobEvicted",
}

_REPLACES = {"Running": "Restarting", "Restarting": "Running"}


@dataclass(frozen=True)
class Conditions:
    """Conditions in the order of their creation. The list never changes: `having` returns the next one."""

    items: tuple[dict[str, str], ...]

    def get(self, kind: Type) -> dict[str, str] | None:
        return next((item for item in self.items if item["type"] == kind), None)

    def true(self, kind: Type) -> bool:
        return (self.get(kind) or {}).get("status") == "True"

    @property
    def finished(self) -> bool:
        return self.true("Succeeded") or self.true("Failed")

    def having(self, kind: Type, *, true: bool, reason: str, message: str, now: str) -> Conditions:
        """With this condition. The same list if it holds already, with the same reason."""
        status = "True" if true else "False"
        old = self.get(kind)
        if old and (old["status"], old.get("reason")) == (status, reason):
            return self
        since = old["lastTransitionTime"] if old and old["status"] == status and "lastTransitionTime" in old else now
        new = {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastUpdateTime": now,
            "lastTransitionTime": since,
        }
        others = [item for item in self.items if item["type"] not in {kind, _REPLACES.get(kind)}]
        if kind in {"Succeeded", "Failed"} and true:
            others = [_ended(item, now) for item in others]
        return Conditions((*others, new))


def conditions_of(status: Status) -> Conditions:
    """The conditions in a status. The first operators of v1alpha1 wrote none, and the outcome into `launcherStatus`."""
    given = tuple(status.get("conditions") or ())
    outcome = status.get("launcherStatus")
    if given or outcome not in ("Succeeded", "Failed"):
        return Conditions(given)
    reason = REASONS["succeeded" if outcome == "Succeeded" else "failed"]
    message = f"launcherStatus was {outcome} when this operator took the job over"
    return Conditions(({"type": outcome, "status": "True", "reason": reason, "message": message},))


def is_finished(status: Status) -> bool:
    """Whether the outcome is in the status: after that, nothing is started again.

    Other operators leave a failed job without `completionTime`. To run its program a second time would be worse.
    """
    return conditions_of(status).finished


def _ended(item: dict[str, str], now: str) -> dict[str, str]:
    """Running ends with the job and keeps its reason, as does the failure of a job that succeeded after all."""
    if item["type"] not in {"Running", "Restarting", "Failed"} or item["status"] == "False":
        return item
    return {**item, "status": "False", "lastUpdateTime": now, "lastTransitionTime": now}
