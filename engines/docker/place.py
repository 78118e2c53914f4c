"""A job on a Docker engine, from nothing to a running launcher. The steps of `bring_up` are the story."""

from __future__ import annotations

import secrets
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from docker.errors import APIError, NotFound

from mpiboot.engines import marks, objects, planned
from mpiboot.engines.docker import create, faults, fill, gate, labels, streams, wishes
from mpiboot.engines.docker.labels import RunLabels, who
from mpiboot.engines.docker.podspec import ContainerSpec, container_spec
from mpiboot.engines.docker.pull import Image, ImageError, present
from mpiboot.engines.docker.remove import remove_run
from mpiboot.engines.docker.telling import Telling
from mpiboot.engines.inbox import LAUNCHER, background
from mpiboot.engines.place import CancelledError
from mpiboot.job.pods import main_container
from mpiboot.ssh import keys

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from docker import APIClient

    from mpiboot.engines.inbox import Event, Inbox
    from mpiboot.engines.marks import Marks
    from mpiboot.engines.output import Output
    from mpiboot.engines.podvolumes import Volume
    from mpiboot.job.model import Job
    from mpiboot.job.plan import Plan

IN_PARALLEL = 8
REMOVED_WITHIN = 60  # seconds; a large layer on a busy disk takes long


@dataclass
class DockerPlace:
    """One run of one job. Containers are known by who they are: `launcher`, `worker-0`."""

    api: APIClient
    job: Job
    inbox: Inbox[Event]
    output: Output
    marks: Marks
    digest: str = ""
    allow_host_path: bool = False
    _cancelled: threading.Event = field(default_factory=threading.Event)
    _specs: dict[str, ContainerSpec] = field(default_factory=dict)
    _ids: dict[str, str] = field(default_factory=dict)
    _filler: str = ""
    _own_images: frozenset[str] = frozenset()
    _plan: Plan | None = None
    _telling: Telling | None = None
    _up: bool = False
    _resizing: threading.Lock = field(default_factory=threading.Lock)
    _readers: list[threading.Thread] = field(default_factory=list)

    def __post_init__(self) -> None:
        job = self.job
        self._run = RunLabels(
            job.name, job.namespace, secrets.token_hex(4), time.time(), job.workers, self.digest,
            labels.elastic_of(job),
        )
        self._material = keys.generate()
        self._pool = ThreadPoolExecutor(IN_PARALLEL, thread_name_prefix="docker")

    def bring_up(self) -> None:
        with faults.of_engine("the job was being started"):
            self._bring_up()

    def cancel(self) -> None:
        self._cancelled.set()

    def start_again(self, who: str) -> None:
        with faults.of_engine(f"{who} was being started again"):
            if self._is_removed(who):
                self._container(who)
            self._start(who)

    def lose(self, who: str) -> None:
        with faults.of_engine(f"{who} was lost"):
            if self._telling and who in self._specs:
                self._telling.went(self._specs[who].index)

    def resize(self, workers: int) -> None:
        with faults.of_engine("the job was being resized"):
            self._resize(workers)

    def signal(self, who: str, signum: int) -> None:
        with faults.of_engine(f"{who} was being ended"), suppress(APIError, KeyError):  # it is gone, or not there yet
            self.api.kill(self._ids[who], signal=signum)

    def remove(self) -> None:
        self.cancel()
        self._pool.shutdown(cancel_futures=True)
        with faults.of_engine("the job was being removed"):
            remove_run(self.api, self._run.run)
        for reader in self._readers:
            reader.join(timeout=1.0)

    # -- the story, and its steps in their order ----------------------------------------------------------------------

    def _bring_up(self) -> None:
        images = self._images()
        self._own_images = frozenset(image.name for image in images if image.own)
        plan = self._plan = planned.plan_in_images(self.job, self._own_images, self._material)
        self._describe(plan, images)
        self._create()
        self._telling = Telling(self.api, self.job, self._filler, self._specs[LAUNCHER], plan.launcher_waits)
        self.marks.mark("created", "job")
        workers = [name for name in self._specs if name != LAUNCHER]
        if plan.launcher_waits == "in-place":
            self._all(self._start, [*workers, LAUNCHER])
        else:
            self._all(self._start, workers)
            if plan.launcher_waits == "gate":
                self._wait_at_gate(workers)
            self._start(LAUNCHER)
        self._up = True
        self._go_on()
        if self._run.elastic:
            background(self.inbox, self._follow_wishes, "wishes")

    def _follow_wishes(self) -> None:
        wishes.follow(self.api, self._filler, self.inbox, self._cancelled)

    def _images(self) -> list[Image]:
        replicas = [self.job.launcher, *([self.job.worker] if self.job.worker else [])]
        mains = [main_container(replica.template, self.job.main_container) for replica in replicas]
        wanted = {str(main.get("image") or ""): str(main.get("imagePullPolicy") or "IfNotPresent") for main in mains}
        if "" in wanted:
            raise ImageError("the job names no image, and containers need one; name it, or use --engine local")
        found = [present(self.api, name, policy, self.output, self._cancelled) for name, policy in wanted.items()]
        self._go_on()
        return found

    def _describe(self, plan: Plan, images: list[Image]) -> None:
        """The plan's pods as containers; what cannot be honoured is said once."""
        machine, given = self.api.info(), objects.of_plan(plan)
        unmet: dict[str, set[str]] = {}
        for role, index, pod in planned.pods(plan):
            spec, missed = container_spec(
                pod, role, index, given, main=self.job.main_container, machine_cpus=int(machine["NCPU"]),
                allow_host_path=self.allow_host_path,
            )  # fmt: skip
            if role == LAUNCHER and plan.launcher_waits != "in-place":
                # A program that does not expect to be process 1 would never see SIGTERM.
                spec = replace(spec, init=bool(machine.get("InitBinary")))
            elif role == LAUNCHER and self.marks.wanted:
                spec = replace(spec, env={**spec.env, **marks.ASK})
            self._specs[who(role, index)] = spec
            for what in missed:
                unmet.setdefault(what, set()).add(role)
            image = next(image for image in images if image.name == spec.image)
            if spec.security.non_root and spec.security.user in {None, "0"} and image.runs_as_root:
                raise ImageError(f"{spec.name}: runAsNonRoot, but its image {image.name} runs as root; set runAsUser")
        planned.tell(self.output, plan, unmet, "a Docker engine")

    def _create(self) -> None:
        """All there is, before anything starts. The launcher's name guards the job's name, so it comes first."""
        self._container(LAUNCHER)
        steps = [self._pool.submit(self._network), self._pool.submit(self._fill)]
        steps += [self._pool.submit(self._container, name) for name in self._specs if name != LAUNCHER]
        _finish(steps)

    def _network(self) -> None:
        # Docker chooses the subnet: it knows its own networks, its machine's routes and what the site allows.
        self.api.create_network(self._run.network, driver="bridge", labels=self._run.all(), check_duplicate=True)

    def _container(self, name: str) -> None:
        self._go_on()
        spec = self._specs[name]
        with faults.of_create(self.api, spec):
            self._ids[name] = self.api.create_container(**create.arguments(self.api, spec, self._run))["Id"]

    def _fill(self) -> None:
        self._filler = self._filled(fill.needed(self._specs.values()))

    def _filled(self, volumes: Mapping[str, Volume]) -> str:
        """The container through which these volumes have been filled."""
        arguments = create.filler_arguments(self.api, self._specs[LAUNCHER].image, self._run, list(volumes))
        filler = str(self.api.create_container(**arguments)["Id"])
        self.api.put_archive(filler, "/", fill.archive(volumes))
        return filler

    def _all(self, step: Callable[[str], None], names: list[str]) -> None:
        _finish([self._pool.submit(step, name) for name in names])

    def _start(self, name: str) -> None:
        self._go_on()
        spec = self._specs[name]
        self._readers.append(streams.follow(self.api, self._ids[name], name, self.output, self.inbox))
        with faults.of_start(spec):
            self.api.start(self._ids[name])
        self.marks.mark("started", name)
        if name != LAUNCHER and self._answers(name):
            networks = self.api.inspect_container(self._ids[name])["NetworkSettings"]["Networks"]
            self._tell_address(spec.index, networks[self._run.network]["IPAddress"])

    def _is_removed(self, name: str) -> bool:
        """Whether somebody removed the container. One that is being removed cannot be started, and keeps its name."""
        try:
            if self.api.inspect_container(self._ids[name])["State"]["Status"] in {"removing", "dead"}:
                self.api.wait(self._ids[name], timeout=REMOVED_WITHIN, condition="removed")
                self.api.inspect_container(self._ids[name])
        except NotFound:
            return True
        return False

    def _answers(self, name: str) -> bool:
        """Whether a launcher may be told of it: one that cannot ask by itself hears only of those whose SSH answers."""
        if not self._up or not self._plan or self._plan.launcher_waits != "gate":
            return True
        try:
            self._wait_at_gate([name])
        except gate.NotReadyError as error:
            self.output.say(f"the job goes on without {name}: {error}")
            return False
        return True

    def _tell_address(self, index: int, address: str) -> None:
        if self._telling:
            self._telling.came(index, address)

    def _resize(self, workers: int) -> None:
        """One resize at a time: a later wish waits for an earlier one."""
        with self._resizing:
            before, replica = self.job.workers, self.job.worker
            assert replica
            assert self._telling
            assert self._plan
            self.job = replace(self.job, worker=replace(replica, replicas=workers))
            self._plan = planned.plan_in_images(self.job, self._own_images, self._material)
            self._telling.resized(self.job)
            if workers < before:
                self._all(self._take_away, [who("worker", index) for index in range(workers, before)])
            else:
                self._add(range(before, workers))

    def _add(self, indexes: range) -> None:
        assert self._plan
        given, cpus = objects.of_plan(self._plan), int(self.api.info()["NCPU"])
        there = fill.needed(self._specs.values())
        for index in indexes:
            spec, _ = container_spec(
                self._plan.workers[index], "worker", index, given, main=self.job.main_container, machine_cpus=cpus,
                allow_host_path=self.allow_host_path,
            )  # fmt: skip
            self._specs[who("worker", index)] = spec
        new = {key: volume for key, volume in fill.needed(self._specs.values()).items() if key not in there}
        if new:
            self._filled(new)
        names = [who("worker", index) for index in indexes]
        self._all(self._container, names)
        self._all(self._start, names)

    def _take_away(self, name: str) -> None:
        spec, container = self._specs.pop(name), self._ids.pop(name)
        with suppress(NotFound):
            self.api.stop(container, timeout=int(spec.grace))
            self.api.remove_container(container, v=True, force=True)

    def _wait_at_gate(self, workers: list[str]) -> None:
        limit = planned.init_timeout(self._specs[LAUNCHER].env)
        specs = {self._ids[name]: self._specs[name] for name in workers}
        gate.wait_for_all(self.api, specs, limit, self._cancelled)
        self.marks.mark("ready", "workers")

    def _go_on(self) -> None:
        if self._cancelled.is_set():
            raise CancelledError


def _finish(steps: list[Future[None]]) -> None:
    """Wait for all of them, then raise the first error: nothing may still be under way when the removal begins."""
    errors = [error for step in steps if (error := step.exception())]
    if errors:
        raise errors[0]
