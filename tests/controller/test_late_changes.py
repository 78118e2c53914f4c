"""Which edits a running job ignores. Pure."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.controller.job_state import LAUNCHERS, ignored
from mpiboot.job.model import RunPolicy
from mpiboot.job.read.manifest import Manifest
from mpiboot.job.read.read import read
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
def test_edits_that_a_running_job_ignores(edit: dict[str, Any], with_launcher: list[str], without: list[str]) -> None:
    assert list(ignored(job(), job(**edit), has_launcher=True)) == with_launcher
    assert list(ignored(job(), job(**edit), has_launcher=False)) == without


@pytest.mark.parametrize("launched", [True, False], ids=["launched", "not launched"])
def test_an_edit_of_what_all_pods_are_made_from_is_always_ignored(*, launched: bool) -> None:
    other = replace(job(), main_container="second")  # a field of v1 and v1alpha2
    assert ignored(job(), other, has_launcher=launched) == ("spec.mainContainer",)
    for name, value in (("launch", "off"), ("host-keys", "off"), ("worker-ssh", "on"), ("ssh", "delivered")):
        wish = f"mpiboot.dev/{name}"
        assert ignored(job(), job({wish: value}), has_launcher=launched) == (f"metadata.annotations[{wish}]",)


def test_every_field_of_a_run_policy_is_applied_to_a_running_job_or_reported_as_ignored() -> None:
    applied = {"clean_pod_policy", "scheduling_policy", "suspend", "ttl_seconds_after_finished"}
    for field in fields(RunPolicy):
        words = field.name.split("_")
        path = "spec.runPolicy." + words[0] + "".join(map(str.capitalize, words[1:]))
        assert (path in LAUNCHERS) is (field.name not in applied), f"{path}: LAUNCHERS or `applied` lacks it"
