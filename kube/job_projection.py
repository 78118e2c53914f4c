"""The projection of a launcher's batch Job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from mpiboot.kube.projections import BaseView, job_key, made_from, meta

if TYPE_CHECKING:
    from mpiboot.kube.api import Object


Outcome = Literal["", "Complete", "Failed"]


@dataclass(frozen=True, slots=True)
class JobView(BaseView):
    """A batch Job. `reason` and `message` belong to its failure."""

    key: str
    suspended: bool
    outcome: Outcome
    reason: str
    message: str
    failed: int
    backoff_limit: int
    deadline: int | None  # seconds
    started: str  # status.startTime
    completed: str
    ttl: int | None
    made_from: str  # annotation; empty for Jobs of other operators


def job_view(found: Object) -> JobView | None:
    key = job_key(found)
    if not key:
        return None
    spec, status = found["spec"], found.get("status") or {}
    true = {each["type"]: each for each in status.get("conditions") or () if each.get("status") == "True"}
    outcome: Outcome = "Complete" if "Complete" in true else "Failed" if "Failed" in true else ""
    end = true.get(outcome, {})
    return JobView(
        meta=meta(found),
        key=key,
        suspended=bool(spec.get("suspend")),
        outcome=outcome,
        reason=end.get("reason", "") or "",
        message=end.get("message", "") or "",
        failed=status.get("failed", 0) or 0,
        backoff_limit=spec.get("backoffLimit", 6),
        deadline=spec.get("activeDeadlineSeconds"),
        started=status.get("startTime") or "",
        completed=status.get("completionTime") or "",
        ttl=spec.get("ttlSecondsAfterFinished"),
        made_from=made_from(found),
    )
