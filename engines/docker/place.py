"""A job on a Docker engine, from nothing to a running launcher. The steps of `bring_up` are the story."""

from __future__ import annotations

import secrets
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from docker.errors import APIError

from mpiboot.engines import marks, objects, planned
from mpiboot.engines.docker import create, faults, fill, gate, streams
from mpiboot.engines.docker.labels import RunLabels, who
from mpiboot.engines.docker.podspec import ContainerSpec, container_spec
from mpiboot.engines.docker.pull import Image, ImageError, present
from mpiboot.engines.docker.remove import remove_run
from mpiboot.engines.inbox import LAUNCHER
from mpiboot.engines.place import CancelledError
from mpiboot.job.pods import main_container

if TYPE_CHECKING:
    from collections.abc import Callable

    from docker import APIClient

    from mpiboot.engines.inbox import Event, Inbox
    from mpiboot.engines.marks import Marks
    from mpiboot.engines.output import Output
    from mpiboot.job.model import Job
    from mpiboot.job.plan import Plan

IN_PARALLEL = 8


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
    _addresses: dict[int, str] = field(default_factory=dict)
    _filler: str = ""
    _telling: threading.Lock = field(default_factory=threading.Lock)
    _readers: list[threading.Thread] = field(default_factory=list)

    def __post_init__(self) -> None:
        job = self.job
        self._run = RunLabels(
            job.name, job.namespace, secrets.token_hex(4), time.time(), job.workers, self.digest
        )
        self._pool = ThreadPoolExecutor(IN_PARALLEL, thread_name_prefix="docker")

    def bring_up(self) -> None:
        with faults.of_engine("the job was being started"):
            self._bring_up()

    def cancel(self) -> None:
        self._cancelled.set()

    def start_again(self, who: str) -> None:
        with faults.of_engine(f"{who} was being started again"):
            self._start(who)

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
        plan = planned.plan_in_images(self.job, frozenset(image.name for image in images if image.own))
        self._describe(plan, images)
        self._create()
        self.marks.mark("created", "job")
        workers = [name for name in self._specs if name != LAUNCHER]
        if plan.launcher_waits == "in-place":
            self._all(self._start, [*workers, LAUNCHER])
        else:
            self._all(self._start, workers)
            if plan.launcher_waits == "gate":
                self._wait_at_gate(workers)
            self._start(LAUNCHER)
        self._go_on()

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
        volumes = fill.needed(self._specs.values())
        if volumes:
            arguments = create.filler_arguments(self.api, self._specs[LAUNCHER].image, self._run, list(volumes))
            self._filler = self.api.create_container(**arguments)["Id"]
            self.api.put_archive(self._filler, "/", fill.archive(volumes))

    def _all(self, step: Callable[[str], None], names: list[str]) -> None:
        _finish([self._pool.submit(step, name) for name in names])

    def _start(self, name: str) -> None:
        self._go_on()
        spec = self._specs[name]
        self._readers.append(streams.follow(self.api, self._ids[name], name, self.output, self.inbox))
        with faults.of_start(spec):
            self.api.start(self._ids[name])
        self.marks.mark("started", name)
        if name != LAUNCHER:
            networks = self.api.inspect_container(self._ids[name])["NetworkSettings"]["Networks"]
            self._tell_address(spec.index, networks[self._run.network]["IPAddress"])

    def _tell_address(self, index: int, address: str) -> None:
        """Once every worker has an address, and whenever one changes, the launcher's file says so."""
        with self._telling:
            self._addresses[index] = address
            if not address or len(self._addresses) < self.job.workers:
                return
            text = planned.addresses(self.job, self._addresses).encode()
            spec = self._specs[LAUNCHER]
            for volume in (mount.volume for mount in spec.mounts if mount.volume.addresses):
                path = f"{fill.key(spec, volume)}/{volume.addresses}"
                self.api.put_archive(self._filler, "/", fill.one_file(path, text))

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
