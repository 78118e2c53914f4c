"""What a reconciler remembers of jobs. No cluster."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from mpiboot.controller.api import Api
from mpiboot.controller.connection import Connection
from mpiboot.controller.events import Recorder
from mpiboot.controller.memory import HICCUP, Failing
from mpiboot.controller.metrics import Metrics
from mpiboot.controller.reconcile import Reconciler
from mpiboot.controller.replica import caches
from mpiboot.controller.report import Reporter
from mpiboot.job.settings import Settings
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
def test_a_job_that_goes_is_forgotten_by_those_who_only_show_it(*, going: bool) -> None:
    async def main() -> None:
        api = Api(Connection("http://127.0.0.1:1", None, _nobody, "default"))
        known = caches(api, "", lambda _: None)
        reporter = Reporter(api, known.mpi_jobs, Recorder(api), Metrics())
        follower = Reconciler(api, known, reporter, Settings(), "ed25519", lambda _, __: None)
        known.mpi_jobs.put(stored(1))
        assert follower.view(KEY)
        assert follower._memories[KEY].plan
        if going:
            known.mpi_jobs.put(stored(2, deletionTimestamp="2026-01-02T03:04:05Z"))
        else:
            known.mpi_jobs._take("DELETED", stored(2))
        assert follower.view(KEY) is None
        assert follower._memories == {}

    asyncio.run(main())


def test_only_a_failure_that_lasts_is_told() -> None:
    failing = Failing()
    assert not failing.lasts(1000.0)
    assert not failing.lasts(1000.0 + HICCUP / 2)
    assert failing.lasts(1000.0 + HICCUP)
    failing.over()
    assert not failing.lasts(2000.0)
