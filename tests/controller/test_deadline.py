"""How long a job may still run. The clock stands still."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mpiboot.controller import deadline
from mpiboot.controller.observe import Observed
from mpiboot.job.read.manifest import Manifest
from mpiboot.job.read.read import read
from mpiboot.kube.job_projection import job_view
from mpiboot.kube.projections import mpi_job_view
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
def test_the_deadline_counts_from_the_start_of_the_job(
    launcher: Object | None, left: float | None
) -> None:
    given = mpi_job(policy={"activeDeadlineSeconds": 70})
    metadata = {"name": "job", "namespace": "default", "uid": "uid", "resourceVersion": "1"}
    manifest = {**given, "metadata": metadata, "status": {"startTime": START}}
    job = read(Manifest(manifest)).job
    made = None
    if launcher is not None:
        labels = {"training.kubeflow.org/job-name": "job"}
        named = {"name": "job-launcher", "namespace": "default", "uid": "l", "resourceVersion": "2", "labels": labels}
        made = job_view({"metadata": named, "spec": {"activeDeadlineSeconds": 100}, **launcher})
    assert deadline.until_overdue(job, Observed(mpi_job_view(manifest), made), lambda _: 10.0) == left


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
def test_a_launcher_that_the_operator_ended_stays_for_its_ttl(
    ttl: int | None, launcher: Object, left: float | None
) -> None:
    failed = {"conditions": [{"type": "Failed", "status": "True"}], "completionTime": START}
    metadata = {"name": "job", "namespace": "default", "uid": "uid", "resourceVersion": "1"}
    policy = {} if ttl is None else {"ttlSecondsAfterFinished": ttl}
    manifest = {**mpi_job(policy=policy), "metadata": metadata, "status": failed}
    labels = {"training.kubeflow.org/job-name": "job"}
    named = {"name": "job-launcher", "namespace": "default", "uid": "l", "resourceVersion": "2", "labels": labels}
    made = job_view({"metadata": named, "spec": {"suspend": True}, "status": launcher})
    seen = Observed(mpi_job_view(manifest), made)
    assert deadline.until_removed(read(Manifest(manifest)).job, seen, lambda _: 10.0) == left
