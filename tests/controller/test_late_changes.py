"""Which edits of a running job come too late for its pods. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.controller.memory import ignored
from mpiboot.job.manifest import Manifest
from mpiboot.job.read import read
from tests.controller.conftest import mpi_job

if TYPE_CHECKING:
    from mpiboot.job.model import Job


def job(annotations: dict[str, str] | None = None, **changes: Any) -> Job:  # noqa: ANN401
    manifest = mpi_job(**changes)
    manifest["metadata"] |= {"namespace": "default", "uid": "uid", "annotations": annotations or {}}
    return read(Manifest(manifest)).job


EDITS: list[tuple[dict[str, Any], list[str], list[str]]] = [
    ({"launcherCreationPolicy": "WaitForWorkersReady"}, ["spec.launcherCreationPolicy"], []),
    ({"slotsPerWorker": 2}, ["spec.slotsPerWorker"], []),
    ({"policy": {"backoffLimit": 1}}, ["spec.runPolicy.backoffLimit"], []),
    ({"annotations": {"example.com/note": "x"}}, [], []),
    ({"workers": 3}, [], []),
    ({"policy": {"cleanPodPolicy": "All"}}, [], []),
    ({"policy": {"suspend": True}, "slotsPerWorker": 2}, [], []),
]


@pytest.mark.parametrize(("edit", "with_launcher", "without"), EDITS, ids=[str(edit) for edit, *_ in EDITS])
def test_what_a_running_job_cannot_follow(edit: dict[str, Any], with_launcher: list[str], without: list[str]) -> None:
    assert list(ignored(job(), job(**edit), has_launcher=True)) == with_launcher
    assert list(ignored(job(), job(**edit), has_launcher=False)) == without


@pytest.mark.parametrize("launched", [True, False], ids=["launched", "not launched"])
def test_what_makes_all_pods_comes_too_late_for_any(*, launched: bool) -> None:
    other = replace(job(), main_container="second")  # a field of v1 and v1alpha2
    assert ignored(job(), other, has_launcher=launched) == ("spec.mainContainer",)
    for name, value in (("launch", "off"), ("host-keys", "off"), ("worker-ssh", "on"), ("ssh", "delivered")):
        wish = f"mpiboot.dev/{name}"
        assert ignored(job(), job({wish: value}), has_launcher=launched) == (f"metadata.annotations[{wish}]",)
