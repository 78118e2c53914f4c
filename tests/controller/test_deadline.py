"""How long a job may still take. Pure but for the clock, which stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mpiboot.controller import deadline
from mpiboot.controller.observe import Observed
from mpiboot.controller.view import mpi_job_view
from mpiboot.controller.view_job import job_view
from mpiboot.job.manifest import Manifest
from mpiboot.job.read import read
from tests.controller.conftest import mpi_job

if TYPE_CHECKING:
    from tests.controller.conftest import Object

START = "2026-01-02T03:04:05Z"


@pytest.mark.parametrize(
    ("launcher", "left"),
    [
        (None, 60.0),
        ({"status": {"startTime": "2026-01-02T03:04:06Z"}}, None),
        ({"status": {"startTime": "2026-01-02T03:05:00Z"}}, 90.0),
        ({"status": {"conditions": [{"type": "Complete", "status": "True"}]}}, None),
        ({}, 90.0),
    ],
    ids=["none", "begun with its job", "late", "ended", "not begun"],
)
def test_a_job_has_its_time_from_its_own_start(
    monkeypatch: pytest.MonkeyPatch, launcher: Object | None, left: float | None
) -> None:
    monkeypatch.setattr(deadline, "seconds_since", lambda _: 10.0)
    given = mpi_job(policy={"activeDeadlineSeconds": 70})
    metadata = {"name": "job", "namespace": "default", "uid": "uid", "resourceVersion": "1"}
    manifest = {**given, "metadata": metadata, "status": {"startTime": START}}
    job = read(Manifest(manifest)).job
    made = None
    if launcher is not None:
        labels = {"training.kubeflow.org/job-name": "job"}
        named = {"name": "job-launcher", "namespace": "default", "uid": "l", "resourceVersion": "2", "labels": labels}
        made = job_view({"metadata": named, "spec": {"activeDeadlineSeconds": 100}, **launcher})
    assert deadline.until_overdue(job, Observed(mpi_job_view(manifest), made)) == left


@pytest.mark.parametrize(
    ("ttl", "launcher", "left"),
    [
        (None, {}, None),
        (70, {}, 60.0),
        (5, {}, 0.001),
        (70, {"conditions": [{"type": "Failed", "status": "True"}]}, None),
    ],
    ids=["no TTL", "stays", "over", "the cluster counts"],
)
def test_a_launcher_that_was_ended_stays_as_long_as_one_that_ended(
    monkeypatch: pytest.MonkeyPatch, ttl: int | None, launcher: Object, left: float | None
) -> None:
    monkeypatch.setattr(deadline, "seconds_since", lambda _: 10.0)
    failed = {"conditions": [{"type": "Failed", "status": "True"}], "completionTime": START}
    metadata = {"name": "job", "namespace": "default", "uid": "uid", "resourceVersion": "1"}
    policy = {} if ttl is None else {"ttlSecondsAfterFinished": ttl}
    manifest = {**mpi_job(policy=policy), "metadata": metadata, "status": failed}
    labels = {"training.kubeflow.org/job-name": "job"}
    named = {"name": "job-launcher", "namespace": "default", "uid": "l", "resourceVersion": "2", "labels": labels}
    made = job_view({"metadata": named, "spec": {"suspend": True}, "status": launcher})
    seen = Observed(mpi_job_view(manifest), made)
    assert deadline.until_removed(read(Manifest(manifest)).job, seen) == left
