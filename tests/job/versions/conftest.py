"""Jobs of older API versions, changed at will, read and planned."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.job.plan.plan import Plan, plan
from mpiboot.job.read.manifest import Manifest
from mpiboot.job.read.read import ReadJob, read
from mpiboot.job.settings import Settings
from tests.job.conftest import change

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.job.model import Replica
    from mpiboot.job.plan.ssh_material import SshMaterial

Object = dict[str, Any]
Changes = dict[str, Any]


@pytest.fixture(scope="session")
def old(manifest: Callable[[str], Manifest]) -> Callable[..., Manifest]:
    """A manifest of an older version by its name, changed at paths below spec; an Ellipsis takes a field away."""

    def make(version: str, changes: Changes | None = None) -> Manifest:
        data: Object = copy.deepcopy(dict(manifest(f"{version}.yaml").data))
        of_spec = {path if path.startswith(("Launcher", "Worker")) else f"spec.{path}": value
                   for path, value in (changes or {}).items()}  # fmt: skip
        change(data, of_spec)
        return Manifest(data)

    return make


@pytest.fixture(scope="session")
def read_old(old: Callable[..., Manifest]) -> Callable[..., ReadJob]:
    return lambda version, changes=None: read(old(version, changes))


@pytest.fixture(scope="session")
def plan_old(old: Callable[..., Manifest], material: SshMaterial) -> Callable[..., Plan]:
    def make(version: str, changes: Changes | None = None, image: str = "") -> Plan:
        settings = Settings(own_images=frozenset({image} if image else ()))
        return plan(read(old(version, changes)).job, material, settings)

    return make


def container(pod: Any) -> Object:  # noqa: ANN401
    found: Object = pod["spec"]["containers"][0]
    return found


def launcher_container(plan: Plan) -> Object:
    return container(plan.launcher["spec"]["template"])


def variables(container: Object) -> dict[str, Any]:
    return {item["name"]: item.get("value") for item in container["env"]}


def worker_of(found: ReadJob) -> Replica:
    assert found.job.worker
    return found.job.worker


def texts(found: ReadJob) -> list[str]:
    return [problem.text() for problem in found.warnings]
