
"""What each older version refuses, and what it puts up with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mpiboot.job.problems import ManifestError
from mpiboot.job.read.manifest import Manifest
from mpiboot.job.read.read import ReadJob, UnknownError, read
from tests.job.versions.conftest import Changes, texts

if TYPE_CHECKING:
    from collections.abc import Callable


REFUSED: dict[str, tuple[str, Changes, str]] = {
    "two launchers": ("v1alpha2", {"Launcher.replicas": 2}, "spec.mpiReplicaSpecs.Launcher.replicas: must be 1, is 2"),
    "no workers": ("v1alpha2", {"Worker.replicas": 0}, "spec.mpiReplicaSpecs.Worker.replicas: must be >= 1, is 0"),
    "no slots": ("v1alpha2", {"slotsPerWorker": 0}, "spec.slotsPerWorker: must be >= 1, is 0"),
    "the newer name of a distribution": (
        "v1alpha2", {"mpiDistribution": "Intel"},
        "spec.mpiDistribution: must be one of OpenMPI, IntelMPI, MPICH; is 'Intel'; did you mean IntelMPI?",
    ),
    "a policy": (
        "v1alpha2", {"cleanPodPolicy": "Some"}, "spec.cleanPodPolicy: must be one of None, Running, All; is 'Some'"),
    "no launcher": (
        "v1", {"mpiReplicaSpecs.Launcher": ...},
        "spec.mpiReplicaSpecs.Launcher: must be given: it is the pod that runs mpirun",
    ),
    "no slots in v1": ("v1", {"slotsPerWorker": 0}, "spec.slotsPerWorker: must be >= 1, is 0"),
    "no size": (
        "v1alpha1", {"gpus": ...},
        "spec: one of gpus, processingUnits and replicas must be given: it sets the size of the job",
    ),
    "two sizes": (
        "v1alpha1", {"processingUnits": 4},
        "spec.processingUnits: only one of gpus and processingUnits may be given: each sets the size of the job",
    ),
    "a number of GPUs between two nodes": (
        "v1alpha1", {"gpus": 12},
        (
            "spec.gpus: 12 units cannot be spread over nodes of 8 each: take fewer than 8, or a multiple of it such "
            "as 8 or 16 (gpusPerNode is 8)"
        ),
    ),
    "no GPUs": ("v1alpha1", {"gpus": 0}, "spec.gpus: must be >= 1, is 0"),
    "no containers": (
        "v1alpha1", {"template.spec.containers": []},
        "spec.template.spec.containers: must hold at least one container",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_each_version_refuses(read_old: Callable[..., ReadJob], name: str) -> None:
    version, changes, message = REFUSED[name]
    with pytest.raises(ManifestError) as error:
        read_old(version, changes)
    assert message in str(error.value).splitlines()


WARNED: dict[str, tuple[str, Changes, str]] = {
    "a worker that sleeps": (
        "v1alpha2", {"Worker.template.spec.containers.0.command": ["/bin/sh", "-c", "sleep 365d"]},
        (
            "spec.mpiReplicaSpecs.Worker.template.spec.containers[0].command: this worker only sleeps, so mpirun "
            "cannot reach it: it runs an SSH server instead"
        ),
    ),
    "a launcher that always starts again": (
        "v1alpha2", {"Launcher.restartPolicy": "Always"},
        (
            "spec.mpiReplicaSpecs.Launcher.restartPolicy: must be one of Never, OnFailure, ExitCode; is 'Always': "
            "Never is used"
        ),
    ),
    "workers without number": (
        "v1alpha2", {"Worker.replicas": ...}, "spec.mpiReplicaSpecs.Worker.replicas: not given: 1 is used"),
    "no main container": (
        "v1", {"mainContainer": "chief"},
        (
            "spec.mpiReplicaSpecs.Worker.template.spec.containers: none is called 'chief', as mainContainer says: the "
            "first is used"
        ),
    ),
    "a field of v2beta1": (
        "v1alpha2", {"mpiImplementation": "Intel"},
        "spec.mpiImplementation: unknown field, ignored; in this version it is spec.mpiDistribution",
    ),
    "a field of v1alpha2": (
        "v1", {"backoffLimit": 5}, (
            "spec.backoffLimit: unknown field, ignored; in this version it is spec.runPolicy.backoffLimit"
        )),
    "unknown units": (
        "v1alpha1", {"processingResourceType": "tpu"},
        "spec.processingResourceType: must be nvidia.com/gpu or cpu, is 'tpu': nvidia.com/gpu is used",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WARNED)
def test_what_each_version_puts_up_with(read_old: Callable[..., ReadJob], name: str) -> None:
    version, changes, message = WARNED[name]
    assert message in texts(read_old(version, changes))


def test_an_unknown_version_is_one_line(old: Callable[..., Manifest]) -> None:
    with pytest.raises(UnknownError) as error:
        read(Manifest({**old("v1").data, "apiVersion": "kubeflow.org/v2"}))
    assert str(error.value) == (

            "apiVersion: must be one of kubeflow.org/v2beta1, kubeflow.org/v1, kubeflow.org/v1alpha2, "
            "kubeflow.org/v1alpha1; is 'kubeflow.org/v2'; did you mean kubeflow.org/v1?"

    )
