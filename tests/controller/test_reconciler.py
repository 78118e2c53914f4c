"""What a reconciler keeps of jobs in memory. No cluster."""

from __future__ import annotations

import asyncio
import copy
import gc
import time
import tracemalloc
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.controller import job_state
from mpiboot.controller.act import Actor
from mpiboot.controller.events import Recorder
from mpiboot.controller.job_state import HICCUP, Failing
from mpiboot.controller.metrics import Metrics
from mpiboot.controller.operator_process import caches
from mpiboot.controller.reconcile import Reconciler
from mpiboot.controller.report import Reporter
from mpiboot.job.read.manifest import Manifest
from mpiboot.job.read.read import ReadJob, read
from mpiboot.job.settings import Settings
from mpiboot.kube.api import Api
from mpiboot.kube.connection import Connection
from tests.controller.conftest import mpi_job

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.controller.conftest import Object

KEY = "default/job"


async def _nobody() -> Mapping[str, str]:
    return {}


def stored(version: int, **metadata: str) -> Object:
    named = {"name": "job", "namespace": "default", "uid": "uid", "generation": 1, "resourceVersion": str(version)}
    return {**mpi_job(), "metadata": {**named, **metadata}}


@pytest.mark.parametrize("going", [True, False], ids=["going", "gone"])
def test_a_follower_forgets_a_deleted_job(*, going: bool) -> None:
    async def main() -> None:
        api = Api(Connection("http://127.0.0.1:1", None, _nobody, "default"))
        known = caches(api, "", lambda _: None)
        reporter = Reporter(api, known.mpi_jobs, Recorder(api), Metrics())
        follower = Reconciler(api, known, reporter, Settings(), "ed25519", lambda _, __: None)
        known.mpi_jobs.put(stored(1))
        assert follower.view(KEY)
        if going:
            known.mpi_jobs.put(stored(2, deletionTimestamp="2026-01-02T03:04:05Z"))
        else:
            known.mpi_jobs._take("DELETED", stored(2))
        assert follower.view(KEY) is None
        assert follower._states == {}

    asyncio.run(main())


FINISHED = {"conditions": [{"type": "Succeeded", "status": "True"}], "completionTime": "2026-01-02T03:04:05Z"}


class Rig:
    """A reconciler without a cluster, whose writes to statuses are kept."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.api = Api(Connection("http://127.0.0.1:1", None, _nobody, "default"))
        self.statuses: list[Object] = []
        self.api.replace = self._replace  # type: ignore[method-assign]
        self.caches = caches(self.api, "", lambda _: None)
        self.recorder = Recorder(self.api)
        reporter = Reporter(self.api, self.caches.mpi_jobs, self.recorder, Metrics())
        self.shown: list[object] = []
        self.reconciler = Reconciler(self.api, self.caches, reporter, settings or Settings(), "ed25519", self._show)

    def _show(self, _: str, view: object) -> None:
        self.shown.append(view)

    async def _replace(self, *given: Any, **_: Any) -> Object:  # noqa: ANN401
        manifest: Object = given[3]
        self.statuses.append(manifest["status"])
        return manifest

    def events(self) -> list[Object]:
        waiting = self.recorder._queue
        return [waiting.get_nowait()[-1] for _ in range(waiting.qsize())]


def no_keys(_: str) -> None:
    raise AssertionError("keys are made")


def test_a_finished_job_takes_almost_no_memory_and_no_keys_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_state, "generate", no_keys)

    async def main() -> None:
        rig = Rig()
        before = None
        for number in range(60):
            key = f"default/job{number}"
            job = {**mpi_job(f"job{number}", workers=100), "status": FINISHED}
            named = {"name": f"job{number}", "namespace": "default", "uid": f"uid{number}", "resourceVersion": "1"}
            rig.caches.mpi_jobs.put({**job, "metadata": named})
            if number == 10:  # what is imported and cached once is there now
                tracemalloc.start()
                rig.statuses.clear()
                gc.collect()
                before = tracemalloc.get_traced_memory()[0]
            await rig.reconciler.handle(key)
            assert rig.reconciler.view(key) is None
        rig.statuses.clear()
        rig.shown.clear()
        gc.collect()
        assert before is not None
        # The stored objects themselves, 4 kB each, are among it; a plan of 100 workers has 256 kB.
        assert (tracemalloc.get_traced_memory()[0] - before) / 50 < 12_000

    try:
        asyncio.run(main())
    finally:
        tracemalloc.stop()


def test_a_running_job_keeps_the_workers_that_a_lower_limit_no_longer_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(*_: object) -> None:
        """There is no API server."""

    monkeypatch.setattr(Actor, "act", act)

    def job(version: int, workers: int, active: int) -> Object:
        found = {**mpi_job(workers=workers), "metadata": stored(version, generation=str(version))["metadata"]}
        status = {"replicaStatuses": {"Worker": {"active": active, "failed": 1, "selector": "x"}}} if active else {}
        return {**found, "status": status}

    async def main() -> None:
        rig = Rig(Settings(max_workers=10))
        rig.caches.mpi_jobs.put(job(1, workers=11, active=0))
        await rig.reconciler.handle(KEY)
        assert rig.statuses[-1]["state"] == "Invalid"
        (event,) = rig.events()
        assert "must be <= 10, is 11" in event["message"]

        rig = Rig(Settings(max_workers=10))
        rig.caches.mpi_jobs.put(job(1, workers=11, active=10))  # the operator began it, and starts again now
        await rig.reconciler.handle(KEY)
        assert not [status for status in rig.statuses if status["state"] == "Invalid"]
        said = "spec: has 11 workers, and this installation allows 10 for new jobs: the job goes on"
        assert [each["message"] for each in rig.events() if each["reason"] == "ValidationWarning"] == [said]
        rig.caches.mpi_jobs.put(job(2, workers=12, active=10))
        await rig.reconciler.handle(KEY)
        assert "must be <= 11, is 12" in rig.events()[0]["message"]

        rig = Rig(Settings(max_workers=10))
        rig.caches.mpi_jobs.put(job(1, workers=11, active=0) | {"status": FINISHED})
        await rig.reconciler.handle(KEY)
        assert [status["state"] for status in rig.statuses] == ["Succeeded"]

    asyncio.run(main())


def test_an_event_reports_once_that_hosts_are_not_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(*_: object) -> None:
        """There is no API server."""

    monkeypatch.setattr(Actor, "act", act)

    async def events(annotations: Mapping[str, str], status: Object, command: list[str]) -> list[str]:
        rig = Rig()
        job = {**mpi_job(), "metadata": {**stored(1)["metadata"], "annotations": annotations}, "status": status}
        worker = copy.deepcopy(job["spec"]["mpiReplicaSpecs"]["Worker"])
        worker["template"]["spec"]["containers"][0]["command"] = command
        job["spec"]["mpiReplicaSpecs"]["Worker"] = worker
        rig.caches.mpi_jobs.put(job)
        await rig.reconciler.handle(KEY)
        rig.caches.mpi_jobs.put(
            {**job, "metadata": {**job["metadata"], "resourceVersion": "2"}}
            | {"status": rig.statuses[-1] if rig.statuses else status}
        )
        await rig.reconciler.handle(KEY)
        return [each["message"] for each in rig.events() if each["reason"] == "HostsNotVerified"]

    sshd = ["/usr/sbin/sshd", "-De"]
    (said,) = asyncio.run(events({}, {}, sshd))
    assert said.startswith("the launcher does not verify the host keys of the workers, because ")
    assert "annotate the job with mpiboot.dev/host-keys: verify" in said
    assert asyncio.run(events({}, {}, [])) == []
    assert asyncio.run(events({"mpiboot.dev/host-keys": "verify"}, {}, sshd)) == []
    assert asyncio.run(events({"mpiboot.dev/host-keys": "off"}, {}, sshd)) == []
    running = {"conditions": [{"type": "Running", "status": "True"}]}
    assert asyncio.run(events({}, running, sshd)) == []  # the operator's process before this one reported it


def test_a_follower_makes_no_keys_and_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_state, "generate", no_keys)

    async def main() -> None:
        rig = Rig()
        rig.caches.mpi_jobs.put(stored(1))
        view = rig.reconciler.view(KEY)
        assert view
        assert view.names == ("job-worker-0.job.default.svc", "job-worker-1.job.default.svc")
        assert rig.reconciler._states[KEY].plan is None

    asyncio.run(main())


@pytest.mark.parametrize("slow", [False, True], ids=["fails", "takes too long"])
def test_a_job_at_which_the_operator_fails_is_parked_until_it_is_edited(
    monkeypatch: pytest.MonkeyPatch, *, slow: bool
) -> None:
    looks = 0

    def fail(*_: object, **__: object) -> None:
        nonlocal looks
        looks += 1
        raise KeyError("spec")

    def take_long(*_: object, **__: object) -> ReadJob:
        nonlocal looks
        looks += 1
        times.append(times[-1] + 10 * job_state.LONGEST_READ)
        return read(Manifest(mpi_job() | {"metadata": {"name": "job", "uid": "uid"}}))

    times = [0.0]
    monkeypatch.setattr(job_state, "read", take_long if slow else fail)
    monkeypatch.setattr(time, "thread_time", lambda: times[-1])

    async def main() -> None:
        nonlocal looks
        rig = Rig()
        rig.caches.mpi_jobs.put(stored(1))
        for _ in range(0 if slow else job_state.MOST_CRASHES - 1):
            with pytest.raises(KeyError):
                await rig.reconciler.handle(KEY)
        assert await rig.reconciler.handle(KEY) == job_state.PARKED_FOR
        said = f"the operator cannot handle this job ({'TooSlowError' if slow else 'KeyError'}: "
        (event,) = rig.events()
        assert (event["reason"], event["message"].startswith(said)) == ("JobParked", True)
        assert rig.statuses[-1]["reason"].startswith(said)
        looks = 0
        left = await rig.reconciler.handle(KEY)
        assert left
        assert left > job_state.PARKED_FOR / 2
        assert looks == 0
        rig.caches.mpi_jobs.put(stored(2, generation="2"))
        with suppress(KeyError):
            await rig.reconciler.handle(KEY)
        assert looks == 1

    asyncio.run(main())


def test_only_a_failure_that_lasts_is_reported() -> None:
    failing = Failing()
    assert not failing.lasts(1000.0)
    assert not failing.lasts(1000.0 + HICCUP / 2)
    assert failing.lasts(1000.0 + HICCUP)
    failing.over()
    assert not failing.lasts(2000.0)
