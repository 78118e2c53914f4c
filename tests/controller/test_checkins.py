"""The operator between workers and launchers: who may speak, and what a launcher hears."""

from __future__ import annotations

import base64
import socket
import time
from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.checkin.client import Report, Stream, post
from tests.controller.conftest import PATIENCE, eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.controller.conftest import Operator, World


@pytest.fixture
def url(start_operator: Callable[..., Operator], bare_world: World, operator: Operator) -> str:
    """Where an operator takes check-ins. Another leads: it only watches, and must serve all the same."""
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


def test_a_launcher_hears_of_workers_and_of_what_they_lack(world: World, url: str) -> None:
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
