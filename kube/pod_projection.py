"""The projection of a pod, and its state in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiboot.job import job_annotations, names
from mpiboot.job.plan import sshd
from mpiboot.job.values import natural
from mpiboot.kube import pull_errors
from mpiboot.kube.projections import BaseView, job_key, meta

if TYPE_CHECKING:
    from mpiboot.kube.api import Object

# The kubelet's reasons during a normal start: they explain nothing.
_NORMAL = frozenset({"ContainerCreating", "PodInitializing", ""})


@dataclass(frozen=True, slots=True)
class PodView(BaseView):
    """A pod of some job. `why` is one line about what is wrong with it or what it waits for, or is empty."""

    key: str
    role: str  # launcher or worker
    index: int  # a worker's number; -1 for others
    phase: str
    ready: bool
    started: bool  # its main container runs
    probed: bool  # its startup probes have succeeded, and it is not Ready because of readiness probes alone
    gates: tuple[str, ...]
    ip: str
    node: str
    reason: str  # of the pod's status, such as Evicted, else of its container's failure, such as OOMKilled
    message: str
    failure: str  # how its container ended last, if that was a failure: it may run again by now
    why: str
    addresses: str  # annotation of a launcher
    discovery: str  # annotation of a launcher
    restarts: int
    ready_at: str
    began: str  # when its container that runs was started
    ended_at: str  # when its container ended; if unknown, when it was ready for the last time
    unfit: str  # what its image lacks for any job, in one line

    @property
    def ended(self) -> bool:
        return self.phase in {"Succeeded", "Failed"}

    @property
    def gated(self) -> bool:
        """Whether our scheduling gate holds it back."""
        return job_annotations.GATE in self.gates


def pod_view(found: Object) -> PodView | None:
    key = job_key(found)
    if not key:
        return None
    fields, spec, status = found["metadata"], found["spec"], found.get("status") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    containers = status.get("containerStatuses") or []
    ready = conditions.get("Ready", {})
    failure = _failure(containers, deleted="deletionTimestamp" in fields)
    return PodView(
        meta=meta(found),
        key=key,
        role=(fields.get("labels") or {}).get(names.ROLE_LABEL, ""),
        index=_index(fields["name"]),
        phase=status.get("phase", "Pending"),
        ready=ready.get("status") == "True",
        started=any("running" in each.get("state", {}) for each in containers),
        # Without a readiness probe it is Ready a moment later, and the cluster's DNS has its name by then.
        probed=any(each.get("readinessProbe") for each in spec.get("containers") or ())
        and bool(containers)
        and all(each.get("started") for each in containers),
        gates=tuple(gate["name"] for gate in spec.get("schedulingGates") or ()),
        ip=status.get("podIP", ""),
        node=spec.get("nodeName", ""),
        reason=status.get("reason") or str(failure.get("reason", "")),
        message=status.get("message", ""),
        failure=_ended(failure) if failure else "",
        why=_why(status, conditions),
        addresses=(fields.get("annotations") or {}).get(job_annotations.ADDRESSES, ""),
        discovery=(fields.get("annotations") or {}).get(job_annotations.DISCOVERY, ""),
        restarts=sum(each.get("restartCount", 0) for each in containers),
        ready_at=ready.get("lastTransitionTime", "") or "",
        began=_time(containers, "running", "startedAt"),
        ended_at=_time(containers, "terminated", "finishedAt") or ready.get("lastTransitionTime", "") or "",
        unfit=_unfit(containers),
    )


def _time(containers: list[dict[str, Any]], state: str, which: str) -> str:
    times = (((each.get("state") or {}).get(state) or {}).get(which) for each in containers)
    return max((time for time in times if time), default="")


def _index(name: str) -> int:
    """The index from the pod's name: the label differs where the launcher takes ranks."""
    number = natural(name.rpartition("-")[2])
    return -1 if number is None else number


def is_failed_launcher(pod: PodView) -> bool:
    """Whether the pod explains why a job failed."""
    return pod.role == "launcher" and (pod.phase == "Failed" or bool(pod.failure))


def _failure(containers: list[dict[str, Any]], *, deleted: bool) -> dict[str, Any]:
    """The end of the first container that failed; of a restarted container, its last state."""
    # Deleting a pod ends its container: the end before that one explains more.
    order = ("lastState", "state") if deleted else ("state", "lastState")
    for each in containers:
        for field in order:
            ended: dict[str, Any] = (each.get(field) or {}).get("terminated") or {}
            if ended.get("exitCode"):
                return ended
    return {}


def _unfit(containers: list[dict[str, Any]]) -> str:
    """The message of mpiboot's own worker command. A restart would end with the same message."""
    for each in containers:
        for state in (each.get("state") or {}, each.get("lastState") or {}):
            ended = state.get("terminated") or {}
            message = (ended.get("message") or "").strip()
            if ended.get("exitCode") == sshd.UNFIT and message.startswith(sshd.UNFIT_SAYS):
                return str(message.removeprefix("mpiboot: "))
    return ""


def _why(status: dict[str, Any], conditions: dict[str, Any]) -> str:
    phase = status.get("phase", "Pending")
    if phase == "Running":
        return _containers(status, "containerStatuses")
    if phase == "Failed":
        text = _words(status.get("reason", ""), status.get("message", ""))
        return text or _containers(status, "containerStatuses") or "failed"
    if phase != "Pending":
        return ""
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        reason = scheduled.get("reason", "")
        # The gate of mpiboot explains nothing; the gates of others do.
        return _words(reason, scheduled.get("message", ""))
    return _containers(status, "initContainerStatuses") or _containers(status, "containerStatuses")


def _containers(status: dict[str, Any], field: str) -> str:
    """The problem of the first container that has one."""
    for each in status.get(field) or ():
        state: dict[str, Any] = each.get("state") or {}
        if cause := pull_errors.short(each):
            return cause
        if (waiting := state.get("waiting")) and waiting.get("reason", "") not in _NORMAL:
            last = (each.get("lastState") or {}).get("terminated")
            return _words(waiting["reason"], waiting.get("message", "")) + (f"; before: {_ended(last)}" if last else "")
        if (ended := state.get("terminated")) and ended.get("exitCode"):
            return _ended(ended)
    return ""


def _ended(state: dict[str, Any]) -> str:
    code = state.get("exitCode", 0)
    how = f"signal {state['signal']}" if state.get("signal") else f"exit code {code}"
    reason = state.get("reason", "")
    text = how if reason in {"", "Error", "Completed"} else f"{reason}, {how}"
    message = (state.get("message") or "").strip().splitlines()
    return f"{text}: {message[-1]}" if message else text


def _words(reason: str, message: str) -> str:
    text = ": ".join(part for part in (reason, " ".join(message.split())) if part)
    return text if len(text) <= 300 else text[:297] + "..."
