"""The check-in service of the operator: tokens, and what a launcher receives."""

from __future__ import annotations

import asyncio
import base64
import socket
import time
from typing import TYPE_CHECKING, Any, cast

import pytest

from mpiboot.checkin.authority import Credentials
from mpiboot.checkin.client import Report, Stream, post
from mpiboot.controller.cache import Cache
from mpiboot.controller.checkins import ClusterAuthority
from mpiboot.kube import kinds
from mpiboot.kube.api_error import ApiError
from mpiboot.kube.projections import mpi_job_view
from tests.controller.conftest import PATIENCE, eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.kube.api import Api
    from tests.controller.conftest import Operator, World


@pytest.fixture
def url(start_operator: Callable[..., Operator], bare_world: World, operator: Operator) -> str:
    """The check-in URL of an operator that does not lead: it watches, and serves check-ins all the same."""
    assert operator.process.poll() is None
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    flags = (f"--namespace={bare_world.namespace}", f"--lock-namespace={bare_world.namespace}")
    lease = {"metadata": {"name": "mpiboot-operator"}, "spec": {"holderIdentity": "other", "leaseDurationSeconds": 900}}
    path = f"/apis/coordination.k8s.io/v1/namespaces/{bare_world.namespace}/leases"
    bare_world.client.do("POST", path, lease)
    follower = start_operator(*flags, f"--checkin-port={url.rpartition(':')[2]}", f"--checkin-urls={url}", ready=False)

    def listening() -> bool:
        assert follower.process.poll() is None
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", int(url.rpartition(":")[2]))) == 0

    eventually("a port for check-ins", listening)
    return url


def token(world: World) -> str:
    secret = world.get("Secret", "job-ssh")
    assert secret
    return base64.b64decode(secret["data"]["token"]).decode()


def test_a_launcher_receives_its_workers_and_what_they_lack(world: World, url: str) -> None:
    world.submit(image="mpiboot/openmpi:latest")
    world.started()
    job = f"{world.namespace}/job"
    uids = [pod["metadata"]["uid"] for pod in world.workers()]
    stream = Stream([url], job, token(world))
    try:
        pending = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
        world.phase(world.workers()[1], "Pending", conditions=[pending])
        report = Report("10.1.2.3", 2222, "mpiuser", uids[0], "s1")
        posted = post([url], job, 0, report, token(world), time.monotonic() + PATIENCE)
        assert posted.failures == ()

        def heard() -> Any:  # noqa: ANN401
            workers = stream.latest.workers
            states = [(each.name, each.state, each.address, each.reason) for each in workers]
            return states == [
                (f"job-worker-0.job.{world.namespace}.svc", "ready", "10.1.2.3", ""),
                (f"job-worker-1.job.{world.namespace}.svc", "pending", "", "Unschedulable: 0/1 nodes"),
            ]

        eventually("both workers", heard)
    finally:
        stream.close()


def test_a_wrong_token_is_refused(world: World, url: str) -> None:
    world.submit(image="mpiboot/openmpi:latest")
    world.started()
    report = Report("10.1.2.3", 2222, "mpiuser")
    for job in (f"{world.namespace}/job", f"{world.namespace}/none"):
        posted = post([url], job, 0, report, "not-the-token", time.monotonic() + 1)
        assert "403" in posted.failures[0]


def test_wrong_tokens_cost_few_requests() -> None:
    asked: list[str] = []

    class Secrets:
        async def get(self, _: object, __: str, name: str) -> dict[str, Any]:
            asked.append(name)
            if name == "none-ssh":
                raise ApiError(404, "NotFound", "no such secret")
            owner = {"controller": True, "kind": "MPIJob", "name": "job", "uid": "uid"}
            named = {"name": name, "namespace": "default", "uid": "s", "resourceVersion": "1"}
            data = {"token": base64.b64encode(b"token").decode()}
            return {"metadata": {**named, "ownerReferences": [owner]}, "data": data}

    async def main() -> None:
        jobs = Cache(cast("Api", Secrets()), kinds.MPI_JOB, mpi_job_view, lambda _: None)
        for name in ("job", "none"):
            named = {"name": name, "namespace": "default", "uid": "uid", "resourceVersion": "1"}
            jobs.put({"metadata": named})
        authority = ClusterAuthority(cast("Api", Secrets()), jobs, lambda _: None)
        for _ in range(100):
            assert await authority.credentials("default/job") == Credentials("uid", "token")
            assert await authority.credentials("default/none") is None
        assert asked.count("job-ssh") == 1
        assert asked.count("none-ssh") < 20
        named = {"name": "job", "namespace": "default", "uid": "another", "resourceVersion": "2"}
        jobs.put({"metadata": named})
        assert await authority.credentials("default/job") is None

    asyncio.run(main())
