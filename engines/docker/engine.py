"""A job on a Docker engine. `_start_all` shows the steps from nothing to a running launcher, in their order."""

from __future__ import annotations

import secrets
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from docker.errors import APIError, NotFound

from mpiboot.engines.directories import Directories
from mpiboot.engines.docker import bind_mounts, create, faults, labels, scale_request, streams, volumes, wait_gate
from mpiboot.engines.docker.addresses_file import AddressesFile
from mpiboot.engines.docker.creations import Creations
from mpiboot.engines.docker.labels import RunLabels
from mpiboot.engines.docker.podspec import ContainerSpec, container_spec
from mpiboot.engines.docker.pull import Image, present
from mpiboot.engines.docker.remove import remove_run
from mpiboot.engines.docker.security import Allowed
from mpiboot.engines.inbox import LAUNCHER, in_background, process_name
from mpiboot.engines.pods import local_plan, objects
from mpiboot.engines.timeline.recorder import EVENTS_ON_STDERR
from mpiboot.job.errors import UserError
from mpiboot.job.template import main_container
from mpiboot.ssh import keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from docker import APIClient

    from mpiboot.engines.inbox import Event, Inbox
    from mpiboot.engines.output import Output
    from mpiboot.engines.pods.pod_volumes import Volume
    from mpiboot.engines.stdin import Stdin
    from mpiboot.engines.timeline.recorder import EventRecorder
    from mpiboot.job.model import Job, Role
    from mpiboot.job.plan.plan import Plan

IN_PARALLEL = 8
REMOVED_WITHIN = 60  # seconds; a large layer on a busy disk takes long


@dataclass
class DockerEngine:
    """One run of one job. Containers have the names of processes: `launcher`, `worker-0`."""

    api: APIClient
    job: Job
    inbox: Inbox[Event]
    output: Output
    recorder: EventRecorder
    stdin: Stdin | None = None
    allowed: Allowed = Allowed()  # noqa: RUF009 (it is frozen)
    directories: Directories = Directories()  # noqa: RUF009 (it is frozen)
    run_id: str = field(default_factory=lambda: secrets.token_hex(4))
    _creations: Creations = field(default_factory=Creations)
    _specs: dict[str, ContainerSpec] = field(default_factory=dict)
    _ids: dict[str, str] = field(default_factory=dict)
    _filler: str = ""
    _own_images: frozenset[str] = frozenset()
    _plan: Plan | None = None
    _addresses: AddressesFile | None = None
    _started: bool = False
    _scaling: threading.Lock = field(default_factory=threading.Lock)  # a later request waits for an earlier one
    _changes: threading.Lock = field(default_factory=threading.Lock)  # of the set of workers
    _readers: list[threading.Thread] = field(default_factory=list)

    def __post_init__(self) -> None:
        job = self.job
        self._run = RunLabels(job.name, self.run_id, time.time(), job.workers, labels.elastic_of(job))
        self._material = keys.generate()
        self._pool = ThreadPoolExecutor(IN_PARALLEL, thread_name_prefix="docker")

    def start(self) -> None:
        with faults.of_engine("the job was being started"):
            self._start_all()

    def cancel(self) -> None:
        self._creations.cancel()

    def restart(self, process: str) -> None:
        with faults.of_engine(f"{process} was being started again"):
            with self._changes:
                if process not in self._specs:
                    return
                if self._is_removed(process):
                    self._create_container(process)
                self._start_container(process)
            self._publish_address(process)

    def withdraw(self, worker: str) -> None:
        with faults.of_engine(f"{worker} was being taken out of the list of hosts"):
            spec = self._specs.get(worker)
            if self._addresses and spec:
                self._addresses.remove(spec.index)

    def scale(self, workers: int) -> None:
        with faults.of_engine("the number of workers was being changed"), self._scaling:
            self._scale(workers)

    def signal(self, process: str, number: int) -> None:
        # suppress: it is gone, or does not exist yet
        with faults.of_engine(f"{process} was being ended"), suppress(APIError, KeyError):
            self.api.kill(self._ids[process], signal=number)

    def remove(self) -> None:
        self.cancel()
        self._pool.shutdown(cancel_futures=True)
        self._creations.wait()
        with faults.of_engine("the job was being removed"):
            remove_run(self.api, self._run.run)
        for reader in self._readers:
            reader.join(timeout=1.0)

    # -- the start, and its steps in their order ----------------------------------------------------------------------

    def _start_all(self) -> None:
        machine = self._pool.submit(self.api.info)
        images = self._find_images()
        self._own_images = frozenset(image.name for image in images if image.own)
        plan = self._plan = local_plan.plan_for_images(self.job, self._own_images, self._material)
        self._describe(plan, images, machine.result())
        self._create_all()
        mode = plan.arrangement.launch_mode
        self._addresses = AddressesFile(self.api, self.job, self._filler, self._specs[LAUNCHER], mode)
        self.recorder.record("created", "job")
        workers = [process for process in self._specs if process != LAUNCHER]
        if plan.arrangement.waits_by_itself:
            self._in_parallel(self._start_process, [*workers, LAUNCHER])
        else:
            self._in_parallel(self._start_process, workers)
            if mode == "gate":
                self._wait_at_gate(workers)
            self._start_process(LAUNCHER)
        self._started = True
        self._creations.check()
        if self._run.elastic:
            in_background(self.inbox, self._follow_scale_requests, "scale requests")

    def _follow_scale_requests(self) -> None:
        scale_request.follow(self.api, self._filler, self.inbox, self._creations.cancelled)

    def _find_images(self) -> list[Image]:
        replicas = [self.job.launcher, *([self.job.worker] if self.job.worker else [])]
        mains = [main_container(replica.template, self.job.main_container) for replica in replicas]
        wanted = {str(main.get("image") or ""): str(main.get("imagePullPolicy") or "IfNotPresent") for main in mains}
        if "" in wanted:
            raise UserError("the job names no image, and containers need one; name it, or use --engine local")
        cancelled = self._creations.cancelled
        found = [present(self.api, name, policy, self.output, cancelled) for name, policy in wanted.items()]
        self._creations.check()
        return found

    def _describe(self, plan: Plan, images: list[Image], machine: Mapping[str, Any]) -> None:
        """Turn the plan's pods into containers, and warn once of what has no effect."""
        ignored: dict[str, set[str]] = {}
        for role, index, pod in local_plan.pods(plan):
            spec, left_out = self._container_spec(pod, role, index, plan, machine)
            if role == LAUNCHER:
                spec = replace(spec, stdin=self.stdin is not None)
            if role == LAUNCHER and plan.arrangement.launch_mode != "in-place":
                # A program that does not expect to be process 1 would ignore SIGTERM.
                spec = replace(spec, init=bool(machine.get("InitBinary")))
                if plan.arrangement.launch_mode == "guard":
                    limit = f"{local_plan.init_timeout(spec.env):.0f}"
                    spec = replace(spec, env={**spec.env, local_plan.INIT_TIMEOUT_ENV: limit})
            elif role == LAUNCHER and self.recorder.wanted:
                spec = replace(spec, env={**spec.env, **EVENTS_ON_STDERR})
            self._specs[process_name(role, index)] = spec
            for what in left_out:
                ignored.setdefault(what, set()).add(role)
            image = next(image for image in images if image.name == spec.image)
            if spec.security.non_root and spec.security.user in {None, "0"} and image.runs_as_root:
                raise UserError(f"{spec.name}: runAsNonRoot, but its image {image.name} runs as root; set runAsUser")
        local_plan.warn(self.output, plan, ignored, "a Docker engine")
        if self.directories.workdir or self.directories.mounts:
            for line in bind_mounts.other_owners(self._specs.values(), images, bind_mounts.caller(machine)):
                self.output.note(line)

    def _container_spec(
        self, pod: Mapping[str, Any], role: Role, index: int, plan: Plan, machine: Mapping[str, Any]
    ) -> tuple[ContainerSpec, Sequence[str]]:
        given, main = objects.of_plan(plan), self.job.main_container
        cpus = int(machine["NCPU"])
        spec, left_out = container_spec(pod, role, index, given, self.allowed, main=main, machine_cpus=cpus)
        # Other images know the users in them, and no others.
        user = bind_mounts.caller(machine) if spec.image in self._own_images else None
        return bind_mounts.in_container(spec, self.directories, user), left_out

    def _create_all(self) -> None:
        """All there is, before anything starts. The launcher's name guards the job's name, so workers come after it."""
        launcher = self._pool.submit(self._create_container, LAUNCHER)
        steps = [launcher, self._pool.submit(self._create_network), self._pool.submit(self._create_volumes)]
        if not launcher.exception():
            workers = (process for process in self._specs if process != LAUNCHER)
            steps += [self._pool.submit(self._create_container, process) for process in workers]
        _finish(steps)

    def _create_network(self) -> None:
        # Docker chooses the subnet: it knows its own networks, its machine's routes and the site's settings.
        with self._creations.one():
            self.api.create_network(self._run.network, driver="bridge", labels=self._run.all(), check_duplicate=True)

    def _create_container(self, process: str) -> None:
        spec = self._specs[process]
        with self._creations.one(), faults.of_create(self.api, spec):
            self._ids[process] = self.api.create_container(**create.arguments(self.api, spec, self._run))["Id"]

    def _create_volumes(self) -> None:
        self._filler = self._fill(volumes.needed(self._specs.values()))

    def _fill(self, wanted: Mapping[str, Volume]) -> str:
        """The container through which these volumes have been filled."""
        arguments = create.filler_arguments(self.api, self._specs[LAUNCHER].image, self._run, list(wanted))
        with self._creations.one():
            filler = str(self.api.create_container(**arguments)["Id"])
            self.api.put_archive(filler, "/", volumes.archive(wanted))
        return filler

    def _in_parallel(self, step: Callable[[str], None], processes: Iterable[str]) -> None:
        _finish([self._pool.submit(step, process) for process in processes])

    def _start_process(self, process: str) -> None:
        self._start_container(process)
        self._publish_address(process)

    def _start_container(self, process: str) -> None:
        container = self._ids[process]
        with self._creations.one(), faults.of_start(self._specs[process]):
            reader = streams.follow(self.api, container, process, self.output, self.inbox)
            self._readers.append(reader)
            if process == LAUNCHER and self.stdin:
                self.stdin.copy_to(streams.ContainerStdin(self.api, container))
            self.api.start(container)
        self.recorder.record("started", process)

    def _publish_address(self, process: str) -> None:
        """Write a worker's address into the launcher's list, if the worker is ready for it."""
        spec, container = self._specs.get(process), self._ids.get(process)
        if process == LAUNCHER or spec is None or container is None or not self._is_ready(process, container, spec):
            return
        with suppress(NotFound):  # it was removed meanwhile
            networks = self.api.inspect_container(container)["NetworkSettings"]["Networks"]
            if self._addresses:
                self._addresses.add(spec.index, networks[self._run.network]["IPAddress"])

    def _is_removed(self, process: str) -> bool:
        """Whether the container was removed. One that is being removed cannot be started, and keeps its name."""
        try:
            if self.api.inspect_container(self._ids[process])["State"]["Status"] in {"removing", "dead"}:
                self.api.wait(self._ids[process], timeout=REMOVED_WITHIN, condition="removed")
                self.api.inspect_container(self._ids[process])
        except NotFound:
            return True
        return False

    def _is_ready(self, process: str, container: str, spec: ContainerSpec) -> bool:
        """Whether the launcher may get its address: a launcher that cannot wait may see only workers with SSH."""
        if not self._started or not self._plan or self._plan.arrangement.launch_mode != "gate":
            return True
        try:
            self._wait_for({container: spec})
        except wait_gate.NotReadyError as error:
            self.output.say(f"the job goes on without {process}: {error}")
            return False
        return True

    def _scale(self, workers: int) -> None:
        before, replica = self.job.workers, self.job.worker
        assert replica
        assert self._addresses
        self.job = replace(self.job, worker=replace(replica, replicas=workers))
        self._plan = local_plan.plan_for_images(self.job, self._own_images, self._material)
        self._addresses.set_job(self.job)
        if workers < before:
            self._in_parallel(self._remove_worker, [process_name("worker", index) for index in range(workers, before)])
        else:
            self._add_workers(self._plan, range(before, workers))

    def _add_workers(self, plan: Plan, indexes: range) -> None:
        machine = self.api.info()
        there = volumes.needed(self._specs.values())
        specs = {
            process_name("worker", index): self._container_spec(plan.workers[index], "worker", index, plan, machine)[0]
            for index in indexes
        }
        new = {key: volume for key, volume in volumes.needed(specs.values()).items() if key not in there}
        if new:
            self._fill(new)
        with self._changes:
            self._specs |= specs
        self._in_parallel(self._create_container, specs)
        self._in_parallel(self._start_process, specs)

    def _remove_worker(self, process: str) -> None:
        with self._changes:
            spec, container = self._specs.pop(process), self._ids.pop(process, None)
        if container is None:
            return
        with suppress(NotFound):
            self.api.stop(container, timeout=int(spec.grace))
            self.api.remove_container(container, v=True, force=True)

    def _wait_at_gate(self, workers: list[str]) -> None:
        self._wait_for({self._ids[process]: self._specs[process] for process in workers})
        self.recorder.record("ready", "workers")

    def _wait_for(self, workers: Mapping[str, ContainerSpec]) -> None:
        limit = local_plan.init_timeout(self._specs[LAUNCHER].env)
        wait_gate.wait_for_all(self.api, workers, limit, self._creations.cancelled)


def _finish(steps: list[Future[None]]) -> None:
    """Wait for all of them, then raise the first error: nothing may still be under way when the removal begins."""
    errors = [error for step in steps if (error := step.exception())]
    if errors:
        raise errors[0]
