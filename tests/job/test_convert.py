"""`mpiboot convert`: the text, and that it is the same job."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.cli.main import main
from mpiboot.job.check.convert import convert
from mpiboot.job.check.yaml_comments import Note, commented
from mpiboot.job.plan.plan import Plan, plan
from mpiboot.job.read.manifest import Manifest, load
from mpiboot.job.read.read import ReadJob, read
from mpiboot.job.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.job.plan.ssh_material import SshMaterial

MANIFESTS = Path(__file__).parent / "manifests"
OLD = ("v1alpha2", "v1", "v1alpha1")


def again(text: str) -> ReadJob:
    """The job that was printed. It has nothing to be warned of but what was kept from before."""
    return read(load(text, "converted.yaml"))


@pytest.mark.parametrize("name", [*OLD, "odd"])
def test_what_is_printed(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["convert", "-f", str(MANIFESTS / f"{name}.yaml")]) == 0
    assert capsys.readouterr().out == (MANIFESTS / "converted" / f"{name}.yaml").read_text()


@pytest.mark.parametrize("name", OLD)
def test_it_is_the_same_job(
    manifest: Callable[[str], Manifest], material: SshMaterial, name: str
) -> None:
    settings = Settings()
    before = read(manifest(f"{name}.yaml")).job
    after = again(convert(manifest(f"{name}.yaml"), settings)).job
    assert (after.dialect, after.api_version) == ("v2beta1", "kubeflow.org/v2beta1")

    def objects(planned: Plan) -> list[Any]:
        return copy.deepcopy([planned.secret, planned.service, list(planned.workers), planned.launcher])

    ours = objects(plan(before, material, settings))
    theirs = objects(plan(after, material, settings))
    container = theirs[3]["spec"]["template"]["spec"]["containers"][0]
    if name == "v1":  # its discovery script prints the slots
        assert container["args"][:2] == ["--slots-per-host", "1"]
        del container["args"][:2]
    if name == "v1alpha1":  # v2beta1 does not know Always
        for pod in ours[2]:
            pod["spec"]["restartPolicy"] = "OnFailure"
    # What Kubernetes has when it is not said.
    for launcher in (ours[3], theirs[3]):
        launcher["spec"].setdefault("backoffLimit", 6)
    assert theirs == ours


def test_every_field_of_v1alpha2_finds_its_place(manifest: Callable[[str], Manifest]) -> None:
    data = copy.deepcopy(dict(manifest("v1alpha2.yaml").data))
    data["metadata"] |= {
        "uid": "1", "resourceVersion": "2", "labels": {"team": "a"},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
    }  # fmt: skip
    data["status"] = {"conditions": []}
    containers = data["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    containers.insert(0, {"name": "logs", "image": "me/logs"})
    data["spec"] |= {
        "mainContainer": "mpi-launcher", "mpiDistribution": "IntelMPI", "backoffLimit": 2, "activeDeadlineSeconds": 9,
        "runPolicy": {"activeDeadlineSeconds": 60, "ttlSecondsAfterFinished": 5},
    }  # fmt: skip
    text = convert(Manifest(data), Settings())
    job, before = again(text).job, read(Manifest(data)).job
    assert job.run_policy == before.run_policy
    assert job.implementation == "Intel"
    assert [each["name"] for each in job.launcher.template["spec"]["containers"]] == ["mpi-launcher", "logs"]
    for comment in (
        "# status is dropped: the cluster writes it",
        "# dropped, because the cluster writes them: resourceVersion, uid, kubectl.kubernetes.io/last-applied-conf",
        "# was mpiDistribution: IntelMPI",
        "# was spec.backoffLimit",
        "# spec.activeDeadlineSeconds: 9 is dropped: the value in runPolicy wins",
        "# mpi-launcher comes first: v2beta1 has no mainContainer",
    ):
        assert comment in text
    assert "team: a" in text


def test_a_job_of_v1alpha1_in_an_image_of_ours_says_what_workers_run(manifest: Callable[[str], Manifest]) -> None:
    settings = Settings(own_images=frozenset({"me/benchmarks"}), units_per_node=4)
    text = convert(manifest("v1alpha1.yaml"), settings)
    assert "# was gpus: 16, at most 4 a node: 4 x 4" in text
    worker = again(text).job.worker
    assert worker
    assert worker.template["spec"]["containers"][0]["command"] == ["mpiboot", "worker"]


def test_a_job_of_the_newest_version_stays_as_it_is(manifest: Callable[[str], Manifest]) -> None:
    text = convert(manifest("pi.yaml"), Settings())
    assert "#" not in text
    assert again(text) == replace(read(manifest("pi.yaml")), warnings=())


def test_a_job_that_could_not_run_is_not_converted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "-f", str(MANIFESTS / "broken.yaml")]) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("value", ["yes", "0o17", "1:30", "2024-01-01", "~", "a: b", "# no", "two\nlines\n", "ü"])
def test_text_stays_text(value: str) -> None:
    text = commented({"a": {"b": [value]}}, [Note("a.b[0]", "here"), Note("a.c", "gone")])
    data = load(text, "x").data
    assert data == {"a": {"b": [value]}}
    assert "# here" in text
    assert "# a.c: gone" in text
