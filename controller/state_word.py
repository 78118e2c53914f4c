"""A job's state in one word and the reason why it does not run: what `kubectl get mpijobs` shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from mpiboot.controller.observe import Observed
    from mpiboot.job.model import Job
    from mpiboot.kube.conditions import Conditions

State = Literal[
    "Invalid", "Pending", "Waiting", "Starting", "Running", "Restarting", "Suspended", "Succeeded", "Failed"
]

LONGEST_MESSAGE = 1024  # of an event; the API server refuses longer ones
LONGEST_REASON = 300


def truncated(text: str, limit: int = LONGEST_MESSAGE) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."


def phase_and_reason(job: Job, seen: Observed, conditions: Conditions, trouble: str) -> tuple[State, str]:
    """The state, and the reason why it is not a better one."""
    if conditions.true("Succeeded"):
        return "Succeeded", ""
    if conditions.true("Failed"):
        return "Failed", (conditions.get("Failed") or {}).get("message", "")[:LONGEST_REASON]
    if job.run_policy.suspend:
        return "Suspended", trouble[:LONGEST_REASON]
    if trouble:
        return "Pending", trouble[:LONGEST_REASON]
    missing = truncated(why_waiting(job, seen), LONGEST_REASON)
    # A launcher with mpiboot runs while it waits. One that succeeded is no restart: its Job will be complete soon.
    if any(pod.phase in {"Running", "Succeeded"} for pod in seen.launcher_pods):
        runs = conditions.true("Running") or seen.enough_ready(job)
        return ("Running", missing) if runs else ("Waiting", missing)
    if conditions.true("Restarting") or conditions.true("Running"):
        return "Restarting", _launcher_trouble(seen)
    if seen.enough_ready(job):
        return "Starting", _launcher_trouble(seen)
    return "Waiting", missing


def why_waiting(job: Job, seen: Observed) -> str:
    """The first worker that is not ready and has a reason, and how many more there are."""
    ready = {pod.index for pod in seen.ready_workers(job)}
    pods = {pod.index: pod for pod in seen.wanted_workers(job)}
    missing = [index for index in range(job.workers) if index not in ready]
    troubled = [(index, pods[index].why) for index in missing if index in pods and pods[index].why]
    if not troubled:
        return ""
    index, why = troubled[0]
    more = f" (and {len(troubled) - 1} more)" if len(troubled) > 1 else ""
    return f"worker-{index}: {why}{more}"


def _launcher_trouble(seen: Observed) -> str:
    pod = seen.launcher_pods[-1] if seen.launcher_pods else None
    return f"launcher: {pod.why}" if pod and pod.why and not pod.gated else ""
