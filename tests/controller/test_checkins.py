"""The check-in service of the operator: tokens, and what a launcher receives."""

from __future__ import annotations

import asyncio
import base64
import socket
import time
from typing import TYPE_CHECKING, Any, cast

import pytest

from mpiboot.checkin.authority import Credentials
from mpiboot.checkin.client import Attempt, Report, Stream, post, post_attempt
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


@pytest.mark.usefixtures("unwatched")
def test_failed_attempts_of_a_launcher_are_in_the_status_and_in_events(
    start_operator: Callable[..., Operator], bare_world: World
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    flags = (f"--namespace={bare_world.namespace}", "--no-leader-election")
    leader = start_operator(*flags, f"--checkin-port={url.rpartition(':')[2]}", f"--checkin-urls={url}")
    bare_world.submit(image="mpiboot/openmpi:latest")
    bare_world.started()
    job = f"{bare_world.namespace}/job"
    first = Attempt("1-a", 1, "attempt 1 of 3 ended after 9.0 s: mpirun exited with code 7; attempt 2 starts")
    second = Attempt("1-a", 2, "attempt 2 of 3 ended after 8.0 s: mpirun exited with code 9; attempt 3 starts")
    others = Attempt("1-b", 1, "attempt 1 of 3 ended after 7.0 s: mpirun exited with code 3; attempt 2 starts")
    try:
        for attempt in (first, first, second, others):
            assert post_attempt([url], job, attempt, token(bare_world), time.monotonic() + PATIENCE).failures == ()

        def counted() -> bool:
            restarts = bare_world.status().get("restarts") or {}
            return (restarts.get("count"), restarts.get("cause")) == (3, others.text) and bool(restarts["time"])

        eventually("a status that counts each attempt once", counted)
        eventually("three events", lambda: len(bare_world.events("AttemptFailed")) == 3)
        said = {event["message"] for event in bare_world.events("AttemptFailed")}
        assert said == {first.text, second.text, others.text}
        wrong = post_attempt([url], job, first, "not-the-token", time.monotonic() + 1)
        assert "403" in wrong.failures[0]
    finally:
        leader.process.terminate()
        leader.process.wait(PATIENCE)


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
