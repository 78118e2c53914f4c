"""Jobs on a Docker engine, read from their labels: also those whose `mpiboot run` was killed."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from docker.errors import APIError, NotFound

from mpiboot.engines.docker import faults, labels, scale_request
from mpiboot.engines.docker.container_state import events as _events
from mpiboot.engines.docker.container_state import process_of
from mpiboot.engines.docker.exec_in import exec_in
from mpiboot.engines.docker.labels import FILLER
from mpiboot.engines.docker.remove import remove_run
from mpiboot.engines.inbox import LAUNCHER, process_name
from mpiboot.engines.jobs import JobInfo, JobStatus, no_such_process, not_elastic
from mpiboot.job.elastic_faults import out_of_range
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from docker import APIClient

    from mpiboot.engines.jobs import JobEvent, State
    from mpiboot.engines.output import Output, Stream

GRACE = 10
SCALED_WITHIN = 60.0


class NoReplyError(UserError):
    """No `mpiboot run` has acted on a request to scale."""

    exit_code = 1


class DockerJobs:
    """The jobs on one engine."""

    where = ""

    def __init__(self, api: APIClient) -> None:
        self._api = api

    def all(self) -> list[JobInfo]:
        """Every run that has left a trace: containers, or only a network or a volume."""
        with faults.of_engine("its jobs were being listed"):
            return self._all()

    def _all(self) -> list[JobInfo]:
        any_run = {"label": [labels.RUN]}
        labelled = [
            *(one["Labels"] for one in self._api.volumes(filters=any_run)["Volumes"] or ()),
            *(one["Labels"] for one in self._api.networks(filters=any_run)),
        ]
        runs = {found[labels.RUN]: found for found in labelled}
        containers: dict[str, dict[str, dict[str, Any]]] = {}
        for one in self._api.containers(all=True, filters=any_run):
            found = one["Labels"]
            runs[found[labels.RUN]] = found
            containers.setdefault(found[labels.RUN], {})[_process(found)] = one
        jobs = [_info(found, containers.get(run, {})) for run, found in runs.items()]
        return sorted(jobs, key=lambda job: job.name)

    def again(self, job: JobInfo) -> JobInfo | None:
        return next((found for found in self.all() if found.run == job.run), None)

    def status(self, job: JobInfo) -> JobStatus:
        with faults.of_engine(f"{job.name} was being looked at"):
            details = self._details(job)
        processes = tuple(process_of(name, detail) for name, detail in details.items())
        timeline = tuple((event.time, f"{event.object} {event.reason.lower()}") for event in _events(details))
        return JobStatus(job, job.outcome, processes, timeline)

    def events(self, job: JobInfo) -> list[JobEvent]:
        with faults.of_engine(f"{job.name} was being looked at"):
            return _events(self._details(job))

    def shell(self, job: JobInfo, process: str, command: Sequence[str]) -> int:
        with faults.of_engine(f"a command was running in {process} of {job.name}"):
            container = self._processes(job).get(process)
            if container is None or container["State"] != "running":
                raise no_such_process(job, process)
            return exec_in(self._api, container["Id"], command)

    def logs(self, job: JobInfo, output: Output, *, follow: bool, worker: int | None = None) -> None:
        with faults.of_engine(f"the output of {job.name} was being read"):
            found = {process: one["Id"] for process, one in self._processes(job).items()}
        shown = {process: process for process in found}
        if worker is not None:
            process = process_name("worker", worker)
            if process not in found:
                raise no_such_process(job, process)
            shown, found = {process: LAUNCHER}, {process: found[process]}
        awaited = []
        for process in sorted(found, key=lambda process: (process == LAUNCHER, process)):
            # A stream for each, as only the engine can tell stdout from stderr.
            readers = [
                threading.Thread(
                    target=self._write_logs, args=(found[process], shown[process], stream, output, follow), daemon=True
                )
                for stream in ("out", "err")
            ]
            for reader in readers:
                reader.start()
            if not follow:
                _join(readers)
            elif process == LAUNCHER or LAUNCHER not in found:
                awaited += readers
        _join(awaited)

    def delete(self, job: JobInfo) -> None:
        with faults.of_engine(f"{job.name} was being removed"):
            self._delete(job)

    def scale(self, job: JobInfo, workers: int, warn: Callable[[str], None]) -> int:  # noqa: ARG002 (the contract)
        with faults.of_engine(f"the number of workers of {job.name} was being changed"):
            return self._scale(job, workers)

    def _scale(self, job: JobInfo, workers: int) -> int:
        containers = self._containers(job)
        launcher = next((one for one in containers if one["Labels"].get(labels.ROLE) == LAUNCHER), None)
        filler = next((one["Id"] for one in containers if one["Labels"].get(labels.ROLE) == FILLER), None)
        if launcher is None or filler is None or launcher["State"] != "running":
            raise UserError(f"{job.name} is not running (its state: {job.state}), so it cannot be scaled")
        size = labels.size_of(launcher["Labels"].get(labels.ELASTIC, ""))
        if size is None:
            raise UserError(not_elastic(job.name))
        if wrong := out_of_range(size[0], workers, size[1]):
            raise UserError(f"{job.name}: {wrong}")
        before = self._workers(job)
        scale_request.write(self._api, filler, workers)
        deadline = time.monotonic() + SCALED_WITHIN
        while self._workers(job) != workers:
            if time.monotonic() > deadline:
                raise NoReplyError(
                    f"{job.name} has not become {workers} workers within {SCALED_WITHIN:.0f} s; "
                    f"if the `mpiboot run` of the job is gone, remove what it left: mpiboot delete {job.name}"
                )
            time.sleep(0.2)  # between two checks
        return before

    def _workers(self, job: JobInfo) -> int:
        containers = self._containers(job)
        return sum(one["Labels"].get(labels.ROLE) == "worker" and one["State"] == "running" for one in containers)

    def _delete(self, job: JobInfo) -> None:
        launchers = [one for one in self._containers(job) if one["Labels"].get(labels.ROLE) == LAUNCHER]
        for launcher in launchers:
            with suppress(APIError):  # it is not running
                self._api.kill(launcher["Id"], signal=signal.SIGTERM)
                self._wait_for_end(launcher["Id"])
        remove_run(self._api, job.run)

    def _wait_for_end(self, container: str) -> None:
        deadline = time.monotonic() + GRACE
        while time.monotonic() < deadline:
            try:
                if not self._api.inspect_container(container)["State"]["Running"]:
                    return
            except NotFound:  # its `mpiboot run` has removed it
                return
            time.sleep(0.1)  # between two checks

    def _processes(self, job: JobInfo) -> dict[str, Mapping[str, Any]]:
        """The containers of the job's processes, the launcher's first."""
        found = {_process(one["Labels"]): one for one in self._containers(job)}
        found.pop(process_name(FILLER, 0), None)
        return dict(sorted(found.items(), key=lambda pair: _order(pair[1]["Labels"])))

    def _details(self, job: JobInfo) -> dict[str, Mapping[str, Any]]:
        details = {}
        for process, container in self._processes(job).items():
            with suppress(NotFound):  # it was removed meanwhile
                details[process] = self._api.inspect_container(container["Id"])
        return details

    def _containers(self, job: JobInfo) -> list[Mapping[str, Any]]:
        return list(self._api.containers(all=True, filters={"label": [f"{labels.RUN}={job.run}"]}))

    def _write_logs(self, container: str, process: str, stream: Stream, output: Output, follow: bool) -> None:  # noqa: FBT001
        with suppress(NotFound):
            which = {"stdout": stream == "out", "stderr": stream == "err"}
            for chunk in self._api.logs(container, stream=True, follow=follow, **which):
                output.feed(process, stream, chunk)
        output.finish(process)


def _join(threads: Iterable[threading.Thread]) -> None:
    for thread in threads:
        thread.join()


def _process(found: Mapping[str, str]) -> str:
    return process_name(found.get(labels.ROLE, ""), int(found.get(labels.INDEX, 0)))


def _order(found: Mapping[str, str]) -> tuple[bool, int]:
    return found.get(labels.ROLE) != LAUNCHER, int(found.get(labels.INDEX, 0))


def _info(found: Mapping[str, str], containers: Mapping[str, Mapping[str, Any]]) -> JobInfo:
    launcher = containers.get(LAUNCHER)
    state, exit_code = _state(launcher)
    return JobInfo(
        name=found[labels.JOB],
        engine="docker",
        state=state,
        workers=_count(found, containers),
        created=float(found.get(labels.CREATED, 0)),
        image=str(launcher["Image"]) if launcher else "",
        run=found[labels.RUN],
        exit_code=exit_code,
    )


def _count(found: Mapping[str, str], containers: Mapping[str, Mapping[str, Any]]) -> int:
    """The number of its workers; an elastic job may have others than at its start."""
    if labels.ELASTIC in found:
        return sum(one["Labels"].get(labels.ROLE) == "worker" for one in containers.values())
    return int(found.get(labels.WORKERS, 0))


def _state(launcher: Mapping[str, Any] | None) -> tuple[State, int | None]:
    """The state of a job, and its exit code if the launcher has ended."""
    if launcher is None:
        return "left-over", None
    if launcher["State"] == "exited":  # "Exited (3) 5 minutes ago"
        code = int(str(launcher["Status"]).partition("(")[2].partition(")")[0])
        return ("failed" if code else "succeeded"), code
    return ("pending" if launcher["State"] == "created" else "running"), None
