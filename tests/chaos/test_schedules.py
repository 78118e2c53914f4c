"""Faults of the API server and deaths of the operator, drawn from a seed, while several jobs live.

`make chaos` runs 300 seeds, a test run a few. A seed that fails is printed; `make chaos SEED=17` runs it again. What
happens to a request follows from the seed, its path and how many like it came before, and not from the order in time.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from mpiboot.job import names
from mpiboot.kube import kinds
from mpiboot.kube.api import Api
from mpiboot.kube.connection import connect
from tests.chaos.lives import Operator, somewhere
from tests.chaos.machine import OWNED, STRANGER, owner
from tests.chaos.proxy import Call, CutError, Proxy, hang

if TYPE_CHECKING:
    from cluster.fixtures import Kubernetes

    from mpiboot.kube.connection import Connection
    from tests.chaos.lives import Object, User
    from tests.controller.conftest import Client

SEED = os.environ.get("MPIBOOT_CHAOS_SEED")
SEEDS = [int(SEED)] if SEED else list(range(300 if os.environ.get("MPIBOOT_CHAOS") else 6))
AT_ONCE = 6
JOBS = 3
STORM = 2.5  # seconds of faults; then the API server is well
SHARE = 0.3  # of the requests that a fault hits
MOST_STARTS = 5.0  # lists and watches of one kind in a second
LOST = 1.5  # seconds until the client gives a silent connection up

BEFORE = ("409", "429", "500", "html", "gateway", "slow", "silent", "cut")
READS = (*BEFORE, "410", "stale")
AFTER = ("cut", "500", "html", "silent")  # the server has done it, and the operator does not know
LINES = ("cut", "again", "410")


class Faulty(Proxy):
    """An API server that fails as its seed says, and keeps a record of what the operator did."""

    def __init__(self, server: Connection, seed: int) -> None:
        super().__init__(server)
        self._seed = seed
        self.calm = False
        self._lists: dict[str, bytes] = {}  # the first answer to each list
        self.made: Counter[tuple[str, str, str]] = Counter()  # plural, name and owner of what the operator made
        self.deleted: Counter[tuple[str, str]] = Counter()
        self.starts: Counter[str] = Counter()  # lists and watches, by path

    def _draw(self, call: Call, what: str) -> random.Random:
        path = re.sub(r"chaos-\w+|(?<=launcher-)\w{5}$", "", call.path)
        return random.Random(f"{self._seed} {what} {call.method} {path} {call.times}")

    def _fault(self, call: Call, what: str, faults: tuple[str, ...], share: float = SHARE) -> str:
        drawn = self._draw(call, what)
        return drawn.choice(faults) if not self.calm and drawn.random() < share else ""

    async def before(self, call: Call) -> web.StreamResponse | None:
        if call.path.rpartition("/")[2] in {kind.plural for kind in (kinds.MPI_JOB, *OWNED)} and call.method == "GET":
            self.starts[call.path] += 1
        if call.path.endswith("/readyz"):
            return None
        return await self._instead(call, self._fault(call, "before", BEFORE if call.writes else READS))

    async def _instead(self, call: Call, fault: str) -> web.StreamResponse | None:
        match fault:
            case "409":
                return refusal(409, "Conflict")
            case "410":
                return refusal(410, "Expired")
            case "429":
                return refusal(429, "TooManyRequests", {"retry-after": "1"})
            case "500":
                return refusal(500, "InternalError")
            case "html":
                return web.Response(text="<html>log in first</html>", content_type="text/html")
            case "gateway":
                return web.Response(text="<html>bad gateway</html>", content_type="text/html", status=502)
            case "slow":
                await asyncio.sleep(self._draw(call, "slow").uniform(0.1, 0.6))
            case "silent":
                return await hang(2 * LOST)
            case "cut":
                raise CutError
            case "stale":
                found = None if call.watch else self._lists.get(call.path)
                return web.Response(body=found, content_type="application/json") if found else None
        return None

    async def after(self, call: Call, status: int, body: bytes) -> web.StreamResponse | None:
        if status == 201 and (found := json.loads(body)).get("metadata", {}).get("ownerReferences"):
            self.made[call.path.rpartition("/")[2], found["metadata"]["name"], owner(found)] += 1
        if call.method == "DELETE" and status in {200, 202}:
            plural, _, name = call.path.rpartition("/")
            self.deleted[plural.rpartition("/")[2], name] += 1
        if call.method == "GET" and status == 200:
            self._lists.setdefault(call.path, body)
        return await self._instead(call, self._fault(call, "after", AFTER, SHARE / 3)) if call.writes else None

    def lines(self, call: Call, line: bytes) -> list[bytes] | None:
        drawn = random.Random(f"{self._seed} {call.path.rpartition('/')[2]} {call.times} {len(line)}")
        match drawn.choice(LINES) if not self.calm and drawn.random() < SHARE / 2 else "":
            case "cut":
                return None
            case "again":
                return [line, line]
            case "410":
                status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
                return [json.dumps({"type": "ERROR", "object": status}).encode()]
        return [line]


def refusal(status: int, reason: str, headers: dict[str, str] | None = None) -> web.Response:
    body = {"kind": "Status", "code": status, "reason": reason, "message": "chaos"}
    return web.json_response(body, status=status, headers=headers)


def stranger(kind: str, name: str, **fields: Any) -> Object:  # noqa: ANN401
    """An object of another owner that has all labels of a job of ours."""
    labels = {names.OPERATOR_LABEL: names.OPERATOR, names.JOB_LABEL: "job0", names.ROLE_LABEL: "worker"}
    reference = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "job0", "uid": STRANGER,
                 "controller": True}  # fmt: skip
    metadata = {"name": name, "labels": labels, "ownerReferences": [reference]}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields}


async def strangers(user: User) -> dict[str, str]:
    """The versions of the objects that the operator must not touch."""
    found = [each for kind in (kinds.POD, kinds.CONFIG_MAP) for each in await user.machine.all(kind)]
    return {each["metadata"]["uid"]: each["metadata"]["resourceVersion"] for each in found if owner(each) == STRANGER}


async def lives(user: User, drawn: random.Random, name: str) -> None:
    """One job's life, as drawn."""
    outcome = drawn.choice(("Complete", "Complete", "Failed"))
    workers, policy = drawn.randint(1, 3), {"cleanPodPolicy": drawn.choice(("All", "Running"))}
    plan = drawn.choice(("straight", "suspend", "resize"))
    await asyncio.sleep(drawn.uniform(0, STORM / 3))
    if plan == "straight":
        user.machine.outcomes[name] = outcome
    await user.submit(name, workers=workers, policy=policy)
    await asyncio.sleep(drawn.uniform(0, STORM))
    if plan == "suspend":
        await user.edit({"runPolicy": {**policy, "suspend": True}}, name)
        await asyncio.sleep(drawn.uniform(0, STORM))
        await user.edit({"runPolicy": {**policy, "suspend": False}}, name)
    if plan == "resize":
        await user.edit({"mpiReplicaSpecs": {"Worker": {"replicas": workers % 3 + 1}}}, name)
    user.machine.outcomes[name] = outcome
    await user.state("Succeeded", "Failed", name=name)
    await user.has_workers(0, name)
    state = (await user.status(name))["state"]
    assert (state == "Succeeded") == (outcome == "Complete"), f"{name}: {outcome} became {state}"


async def schedule(api: Api, server: Connection, seed: int) -> None:
    """One schedule: several jobs, faults and deaths for a while, and the invariants in the end."""
    drawn = random.Random(seed)
    async with somewhere(api) as user, Faulty(server, seed) as proxy:
        assert isinstance(proxy, Faulty)
        pod = stranger("Pod", "job0-worker-7", spec={"containers": [{"name": "main", "image": "x"}]})
        await api.create(kinds.POD, user.namespace, pod)
        await api.create(kinds.CONFIG_MAP, user.namespace, stranger("ConfigMap", "theirs", data={"a": "b"}))
        before = await strangers(user)
        operator, began = Operator(proxy, user.namespace, LOST), time.monotonic()
        operator.start()
        jobs = [f"job{number}" for number in range(JOBS)]
        living = [asyncio.create_task(lives(user, random.Random(f"{seed} {name}"), name)) for name in jobs]
        deaths = drawn.randint(0, 2)
        for _ in range(deaths):
            await asyncio.sleep(drawn.uniform(0.2, STORM / 2))
            await operator.kill()
            operator.start()
        await asyncio.sleep(max(0.0, began + STORM - time.monotonic()))
        proxy.calm = True
        try:
            await asyncio.gather(*living)
        finally:
            for each in living:
                each.cancel()
            await operator.kill()
        lasted = time.monotonic() - began
        # No object twice, unless the operator itself deleted the one before.
        for (plural, name, uid), times in proxy.made.items():
            assert times <= 1 + proxy.deleted[plural, name], f"{plural} {name} of {uid} was made {times} times"
        launchers = {name: times for (plural, name, _), times in proxy.made.items() if plural == kinds.JOB.plural}
        assert launchers == {names.launcher(name): 1 for name in jobs}, f"launchers: {launchers}"
        assert await strangers(user) == before, "an object of another owner was touched"
        for path, starts in proxy.starts.items():
            most = MOST_STARTS * lasted + (1 + deaths) * MOST_STARTS
            assert starts <= most, f"{starts} lists and watches of {path} in {lasted:.1f} s"
        for name in jobs:
            await delete(user, name)
        await user.until("nothing left", lambda: nothing_left(user))


async def delete(user: User, name: str) -> None:
    found = await user.get(kinds.MPI_JOB, name)
    await user.api.delete(kinds.MPI_JOB, user.namespace, name, found["metadata"]["uid"])


async def nothing_left(user: User) -> bool:
    found = [each for kind in OWNED for each in await user.machine.all(kind)]
    return all(owner(each) in {"", STRANGER} for each in found)


@pytest.mark.timeout(1200)
def test_jobs_end_as_they_should_whatever_the_api_server_does(
    api_server: Kubernetes, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    assert client.ask("GET", "/readyz").ok
    failed: dict[int, str] = {}

    async def main() -> None:
        server = await connect(str(api_server.kubeconfig))
        slots = asyncio.Semaphore(AT_ONCE)

        async def one(api: Api, seed: int) -> None:
            async with slots:
                try:
                    await schedule(api, server, seed)
                except Exception as error:  # noqa: BLE001 (the others go on)
                    failed[seed] = f"{type(error).__name__}: {error}"

        async with Api(server) as api:
            await asyncio.gather(*(one(api, seed) for seed in SEEDS))

    asyncio.run(main())
    with capsys.disabled():
        sys.stdout.write(f"\nschedules: {len(SEEDS)}, failed: {len(failed)}\n")
    text = "\n".join(f"make chaos SEED={seed}: {why}" for seed, why in sorted(failed.items()))
    assert not failed, text
