"""The lives of a job, each as its user's steps, and how such a life ends."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import aiohttp

from mpiboot.controller import settings
from mpiboot.controller.operator_process import Replica
from mpiboot.controller.preflight import ClusterError
from mpiboot.kube import kinds
from mpiboot.kube.api import Api, Request
from mpiboot.kube.api_error import ApiError
from mpiboot.kube.conditions import REASONS
from tests.chaos.machine import STRANGER, Machine, owner
from tests.controller.conftest import mpi_job

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from tests.chaos.proxy import Proxy

Object = dict[str, Any]
PATIENCE = 90.0  # seconds


class HastyApi(Api):
    """The operator's client with shorter waits: a test has no minutes for a connection that is dead."""

    hurry: float | None = None

    async def _request(self, request: Request) -> aiohttp.ClientResponse:
        if self.hurry:
            endless = request.timeout.total is None  # a watch
            timeout = aiohttp.ClientTimeout(total=None if endless else self.hurry, sock_read=self.hurry)
            request = replace(request, timeout=timeout)
        return await super()._request(request)


@dataclass
class Operator:
    """An operator for one namespace behind a proxy. It can be killed, and another one started."""

    proxy: Proxy
    namespace: str
    hurry: float | None = None
    _task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.proxy.open = True
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        chosen = settings.make({"namespace": self.namespace, "leader_election": False, "peer_leases": "",
                                "checkin_port": 0, "monitoring_port": 0})  # fmt: skip
        client = HastyApi(self.proxy.connection)
        client.hurry = self.hurry
        async with client as api:
            while True:
                try:
                    await Replica(api, chosen).serve()
                except ClusterError:  # its Deployment starts it again
                    await asyncio.sleep(0.5)

    async def kill(self) -> None:
        """No request of it reaches the API server any more, and no answer reaches it."""
        self.proxy.open = False
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None


@dataclass
class User:
    """A user in one namespace, with a client of the API server's own."""

    api: Api
    machine: Machine

    @property
    def namespace(self) -> str:
        return self.machine.namespace

    async def submit(self, name: str = "job", **changes: Any) -> None:  # noqa: ANN401
        await self.api.create(kinds.MPI_JOB, self.namespace, mpi_job(name, **changes))

    async def edit(self, spec: Object, name: str = "job") -> None:
        await self.api.patch(kinds.MPI_JOB, self.namespace, name, {"spec": spec})

    async def get(self, kind: kinds.Kind, name: str) -> Object:
        """The object, empty if there is none."""
        try:
            return await self.api.get(kind, self.namespace, name)
        except ApiError as error:
            if not error.not_found:
                raise
            return {}

    async def status(self, name: str = "job") -> Object:
        found: Object = (await self.get(kinds.MPI_JOB, name)).get("status") or {}
        return found

    async def workers(self, name: str = "job") -> int:
        pods = await self.machine.all(kinds.POD)
        return sum(each["metadata"]["name"].startswith(f"{name}-worker-") for each in pods if owner(each) != STRANGER)

    async def until(self, what: str, look: Callable[[], Awaitable[object]], name: str = "job") -> None:
        end = time.monotonic() + PATIENCE
        while not await look():
            if time.monotonic() > end:
                raise AssertionError(f"{what}: not within {PATIENCE:.0f} s; {await self.status(name)}")
            await asyncio.sleep(0.05)

    async def state(self, *wanted: str, name: str = "job") -> None:
        async def look() -> bool:
            return (await self.status(name)).get("state") in wanted

        await self.until(f"{name}: {wanted}", look, name)

    async def has_workers(self, count: int, name: str = "job") -> None:
        async def look() -> bool:
            return await self.workers(name) == count

        await self.until(f"{count} workers of {name}", look)


async def succeeds(user: User) -> None:
    """Create, run, finish, clean up."""
    user.machine.outcomes["job"] = "Complete"
    await user.submit(policy={"cleanPodPolicy": "All"})
    await user.state("Succeeded")
    await user.has_workers(0)


async def fails(user: User) -> None:
    user.machine.outcomes["job"] = "Failed"
    await user.submit(policy={"cleanPodPolicy": "Running"})
    await user.state("Failed")
    await user.has_workers(0)


async def is_removed(user: User) -> None:
    """A TTL: the Job gets it when the outcome is in the status."""
    user.machine.outcomes["job"] = "Complete"
    await user.submit(policy={"ttlSecondsAfterFinished": 3600})
    await user.state("Succeeded")

    async def look() -> bool:
        return "ttlSecondsAfterFinished" in (await user.get(kinds.JOB, "job-launcher"))["spec"]

    await user.until("a TTL", look)


async def rests(user: User) -> None:
    """Suspend and resume while it runs."""
    await user.submit()
    await user.state("Running")
    await user.edit({"runPolicy": {"suspend": True}})
    await user.state("Suspended")
    await user.has_workers(0)
    await user.edit({"runPolicy": {"suspend": False}})
    await user.has_workers(2)
    await user.state("Running")
    user.machine.outcomes["job"] = "Complete"
    await user.state("Succeeded")


async def changes_size(user: User) -> None:
    await user.submit(workers=2)
    await user.state("Running")
    await user.edit({"mpiReplicaSpecs": {"Worker": {"replicas": 4}}})
    await user.has_workers(4)
    await user.edit({"mpiReplicaSpecs": {"Worker": {"replicas": 1}}})
    await user.has_workers(1)
    user.machine.outcomes["job"] = "Complete"
    await user.state("Succeeded")


async def is_made_again(user: User) -> None:
    """An edit of a suspended job needs another launcher."""
    await user.submit(policy={"suspend": True})
    await user.state("Suspended")
    await user.edit({"slotsPerWorker": 3, "mpiReplicaSpecs": {"Launcher": {"template": {"spec": {"containers": [
        {"name": "main", "image": "another", "command": ["mpirun", "new"]}]}}}}})  # fmt: skip
    await user.edit({"runPolicy": {"suspend": False}})
    user.machine.outcomes["job"] = "Complete"
    await user.state("Succeeded")


async def waits_for_workers(user: User) -> None:
    """There is no launcher before all workers are ready."""
    user.machine.outcomes["job"] = "Complete"
    await user.submit(launcherCreationPolicy="WaitForWorkersReady")
    await user.state("Succeeded")


LIVES = (succeeds, fails, is_removed, rests, changes_size, is_made_again, waits_for_workers)
STEPS = frozenset(REASONS[each] for each in ("created", "suspended", "resumed", "succeeded", "failed"))


async def end_of(user: User) -> Object:
    """How everything is in the end, in words that do not differ from run to run."""
    status = await user.status()
    found: Object = {"state": status.get("state"), "replicas": status.get("replicaStatuses"),
                     "marked": "launcherJob" in status,
                 # An operator that is dead while the program runs cannot say that it runs.
                     "conditions": {each["type"]: (each["status"], each["reason"] * (each["type"] != "Running"))
                                    for each in status.get("conditions", ())}}  # fmt: skip
    for kind in (kinds.POD, kinds.JOB, kinds.SERVICE, kinds.CONFIG_MAP, kinds.SECRET):
        objects = await user.machine.all(kind)
        found[kind.plural] = sorted(plain(each["metadata"]["name"]) for each in objects)
    job = await user.get(kinds.JOB, "job-launcher")
    container = job["spec"]["template"]["spec"]["containers"][0]
    found["launcher"] = (job["spec"].get("ttlSecondsAfterFinished"), job["spec"].get("suspend"), container["image"])
    return found


def plain(name: str) -> str:
    """A name without what the API server adds to it."""
    return name[: name.rindex("-")] if name.startswith("job-launcher-") else name


async def said(user: User) -> set[str]:
    """The steps of the job's life about which there is an event."""
    events = await user.machine.all(kinds.EVENT)
    return {each["reason"] for each in events if each["reason"] in STEPS}


@contextlib.asynccontextmanager
async def somewhere(api: Api) -> AsyncIterator[User]:
    """A user in a namespace of his own, with a machine that works."""
    name = f"chaos-{uuid.uuid4().hex[:10]}"
    await api.send(Request("POST", "/api/v1/namespaces", body={"metadata": {"name": name}}))
    machine = Machine(api, name)
    task = asyncio.create_task(machine.run())
    try:
        yield User(api, machine)
        if task.done():
            task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        for kind in (kinds.MPI_JOB, kinds.POD, kinds.JOB):
            options = {"propagationPolicy": "Background", "gracePeriodSeconds": 0}
            await api.send(Request("DELETE", kind.path(name), body=options))
