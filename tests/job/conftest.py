"""Manifests as files, and jobs made of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.job.plan.plan import Plan, plan
from mpiboot.job.plan.ssh_material import SshMaterial
from mpiboot.job.read.manifest import Manifest, load
from mpiboot.job.read.read import ReadJob, read
from mpiboot.job.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

MANIFESTS = Path(__file__).parent / "manifests"


def change(data: dict[str, Any], changes: dict[str, Any]) -> None:
    """Set what is at paths of an MPIJob: `Worker.replicas`, `spec.slotsPerWorker`.

    `Launcher` and `Worker` stand for their places below mpiReplicaSpecs, numbers in a path for places in a list, an
    Ellipsis takes a field away.
    """
    for path, value in changes.items():
        parts = path.split(".")
        *above, last = ["spec", "mpiReplicaSpecs", *parts] if parts[0] in ("Launcher", "Worker") else parts
        inner: Any = data
        for part in above:
            inner = inner[int(part)] if isinstance(inner, list) else inner.setdefault(part, {})
        if value is ...:
            del inner[last]
        else:
            inner[last] = value


@pytest.fixture(scope="session")
def manifest() -> Callable[[str], Manifest]:
    """A file of `manifests/` by its name."""
    return lambda name: load((MANIFESTS / name).read_text(), name)


@pytest.fixture(scope="session")
def material() -> SshMaterial:
    return SshMaterial(
        client_private="client private\n",
        client_public="ssh-ed25519 CLIENT client\n",
        host_private="host private\n",
        host_public="ssh-ed25519 HOST host\n",
        token="secret token",
    )


@pytest.fixture(scope="session")
def planned(manifest: Callable[[str], Manifest], material: SshMaterial) -> Callable[..., Plan]:
    """The plan of a file of `manifests/`."""
    return lambda name, **settings: plan(read(manifest(name)).job, material, Settings(**settings))


@pytest.fixture(scope="session")
def small() -> Callable[..., dict[str, Any]]:
    """The smallest good MPIJob, new for each call, changed as `change` does: `small({"spec.slotsPerWorker": 3})`."""

    def role(name: str, count: int) -> dict[str, Any]:
        return {"replicas": count, "template": {"spec": {"containers": [{"name": name, "image": "me/app"}]}}}

    def make(changes: dict[str, Any] | None = None, workers: int = 2) -> dict[str, Any]:
        data: dict[str, Any] = {
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "metadata": {"name": "pi"},
            "spec": {"mpiReplicaSpecs": {"Launcher": role("launcher", 1), "Worker": role("worker", workers)}},
        }
        change(data, changes or {})
        return data

    return make


@pytest.fixture(scope="session")
def read_small(small: Callable[..., dict[str, Any]]) -> Callable[..., ReadJob]:
    return lambda changes=None, **options: read(Manifest(small(changes, **options)))


@pytest.fixture(scope="session")
def plan_small(small: Callable[..., dict[str, Any]], material: SshMaterial) -> Callable[..., Plan]:
    """The plan of `small`, with settings."""

    def make(changes: dict[str, Any] | None = None, workers: int = 2, **settings: Any) -> Plan:  # noqa: ANN401
        return plan(read(Manifest(small(changes, workers))).job, material, Settings(**settings))

    return make
