"""The jobs of a namespace of a cluster, for the commands on jobs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

from mpiboot.engines.inbox import LAUNCHER, process_name
from mpiboot.engines.jobs import JobEvent, JobInfo, JobStatus, Process, no_such_process
from mpiboot.engines.kubernetes.exec_in import exec_in
from mpiboot.engines.kubernetes.launcher_output import LauncherOutput, WorkerOutput
from mpiboot.engines.kubernetes.namespace_jobs import JobId, NoJobError, main_container
from mpiboot.engines.kubernetes.snapshot import Snapshot
from mpiboot.engines.kubernetes.timeline import timeline
from mpiboot.job import template
from mpiboot.job.errors import UserError
from mpiboot.kube.api_error import ApiError, UnreachableError
from mpiboot.kube.clock import seconds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpiboot.engines.jobs import State
    from mpiboot.engines.kubernetes.cluster import Cluster
    from mpiboot.engines.output import Output
    from mpiboot.kube.api import Object
    from mpiboot.kube.pod_projection import PodView

LOOK_EVERY = 0.5  # seconds
# The operator's word for a state -> ours. What is not here has not begun.
STATES: dict[str, State] = {
    "Running": "running", "Restarting": "restarting", "Suspended": "suspended", "Succeeded": "succeeded",
    "Failed": "failed", "Invalid": "failed",
}  # fmt: skip
INVALID = 2  # the exit code of a job that the operator refuses


class KubernetesJobs:
    """The jobs of one namespace."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._jobs = cluster, cluster.jobs
        self.where = f" in namespace {cluster.jobs.namespace}"

    def all(self) -> list[JobInfo]:
        found = self._cluster.call(self._jobs.all())
        return sorted((_info(Snapshot(job, (), {})) for job in found), key=lambda job: job.name)

    def again(self, job: JobInfo) -> JobInfo | None:
        try:
            return _info(self._cluster.call(self._jobs.look(_id(job), LAUNCHER)))
        except NoJobError:
            return None

    def status(self, job: JobInfo) -> JobStatus:
        look = self._cluster.call(self._jobs.look(_id(job)))
        processes = tuple(_process(look, pod) for role in (LAUNCHER, "worker") for pod in look.of(role))
        return JobStatus(_info(look), look.state_line(), processes, timeline(look))

    def events(self, job: JobInfo) -> list[JobEvent]:
        found = self._cluster.call(self._jobs.events(_id(job)))
        return sorted(map(_event, found), key=lambda event: event.time)

    def logs(self, job: JobInfo, output: Output, *, follow: bool, worker: int | None = None) -> None:
        if not self._cluster.call(self._logs(job, output, follow=follow, worker=worker)):
            process = LAUNCHER if worker is None else process_name("worker", worker)
            raise UserError(f"the {process} of {job.name} has not started yet: mpiboot status {job.name}")

    def shell(self, job: JobInfo, process: str, command: Sequence[str]) -> int:
        look = self._cluster.call(self._jobs.look(_id(job)))
        pod = _running(look, process)
        if pod is None:
            raise no_such_process(_info(look), process)
        container = main_container(look.job, self._cluster.call(self._jobs.pod(pod)))
        return exec_in(self._cluster, pod, container, command)

    def delete(self, job: JobInfo) -> None:
        self._cluster.call(self._jobs.delete(_id(job)))

    def scale(self, job: JobInfo, workers: int, warn: Callable[[str], None]) -> int:
        """The same; the operator adds or removes them after this returns."""
        return self._cluster.call(self._jobs.scale(_id(job), workers, warn))

    async def _logs(self, job: JobInfo, output: Output, *, follow: bool, worker: int | None) -> bool:
        """Whether a process has printed anything."""
        pods = LauncherOutput(self._jobs, output) if worker is None else WorkerOutput(self._jobs, output, worker)
        role = LAUNCHER if worker is None else "worker"
        away = False
        while True:
            try:
                seen = await self._jobs.look(_id(job), role)
            except (ApiError, UnreachableError) as error:
                if not follow or (isinstance(error, ApiError) and not error.passing):
                    raise
                if not away:
                    output.say(f"the cluster does not answer: {error}; mpiboot tries again")
                away = True
                await asyncio.sleep(LOOK_EVERY)
                continue
            except NoJobError:
                if not pods.begun:
                    raise
                await pods.end()
                return True
            away = False
            if worker is not None and worker >= _info(seen).workers:
                raise no_such_process(_info(seen), process_name("worker", worker))
            pods.update(seen, follow=follow)
            if seen.conditions.finished or not follow:
                await pods.end()
                return pods.begun
            await asyncio.sleep(LOOK_EVERY)


def _id(job: JobInfo) -> JobId:
    return JobId(job.name, job.run)


def _running(look: Snapshot, process: str) -> str | None:
    """The pod of a process, if it runs: of several launchers the newest."""
    found = [pod for role in (LAUNCHER, "worker") for pod in look.of(role) if _name(pod) == process and pod.started]
    return found[-1].name if found else None


def _name(pod: PodView) -> str:
    return process_name(pod.role, pod.index)


def _process(look: Snapshot, pod: PodView) -> Process:
    state: Literal["pending", "running", "ended"] = (
        "ended" if pod.ended else "running" if pod.started or pod.phase == "Running" else "pending"
    )
    reason = "held back until all workers are ready" if pod.gated else pod.why
    code = look.exit_codes.get(pod.name)
    return Process(_name(pod), state, pod.ready, code, pod.restarts, pod.name, pod.node, reason)


def _info(look: Snapshot) -> JobInfo:
    metadata, spec, status = look.job["metadata"], look.job.get("spec") or {}, look.status
    replicas = {role.lower(): replica for role, replica in (spec.get("mpiReplicaSpecs") or {}).items()}
    launcher = (replicas.get("launcher") or {}).get("template") or {}
    worker = replicas.get("worker")
    main = template.main_container(launcher, str(spec.get("mainContainer") or ""))
    word = str(status.get("state") or "")
    state = STATES.get(word, "pending")
    ended = next((look.conditions.get(kind) for kind in ("Succeeded", "Failed") if look.conditions.true(kind)), None)
    if ended:
        state = "succeeded" if look.conditions.true("Succeeded") else "failed"
    code = look.known_exit_code() if ended else INVALID if word == "Invalid" else None
    return JobInfo(
        name=metadata["name"],
        engine="kubernetes",
        state=state,
        workers=int(worker.get("replicas") or 1) if worker else 0,
        created=seconds_of(metadata["creationTimestamp"]),
        image=str(main.get("image") or ""),
        run=metadata["uid"],
        namespace=metadata["namespace"],
        ended=seconds_of(status.get("completionTime") or ended.get("lastTransitionTime", "")) if ended else None,
        exit_code=code,
        reason=str(status.get("reason") or ""),
    )


def _event(found: Object) -> JobEvent:
    when = found.get("lastTimestamp") or found.get("eventTime") or found.get("firstTimestamp")
    about = found.get("involvedObject") or {}
    return JobEvent(
        time=seconds_of(when or found["metadata"]["creationTimestamp"]),
        type=str(found.get("type") or "Normal"),
        reason=str(found.get("reason") or ""),
        object=f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}",
        message=str(found.get("message") or ""),
        count=int(found.get("count") or 1),
    )
