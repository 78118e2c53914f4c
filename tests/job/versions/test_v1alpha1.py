"""What only v1alpha1 has: a size in units, one template for all, the launcher on a master's node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mpiboot.job.model import RunPolicy
from mpiboot.job.read.read import ReadJob, read
from tests.job.versions.conftest import Changes, container, launcher_container, texts, worker_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.job.plan.plan import Plan
    from mpiboot.job.read.manifest import Manifest


@pytest.mark.parametrize(("size", "workers", "each"), [
    ({"gpus": 16}, 2, 8),
    ({"gpus": 8}, 1, 8),
    ({"gpus": 5}, 1, 5),
    ({"gpus": 12, "gpusPerNode": 4}, 3, 4),
    ({"gpus": ..., "processingUnits": 6, "processingUnitsPerNode": 3}, 2, 3),
    ({"gpus": ..., "processingUnits": 16}, 2, 8),
])  # fmt: skip
def test_units_are_spread_over_workers(
    read_old: Callable[..., ReadJob], size: Changes, workers: int, each: int
) -> None:
    found = read_old("v1alpha1", size)
    assert texts(found) == []
    assert (found.job.workers, found.job.slots_per_worker) == (workers, each)
    assert container(worker_of(found).template)["resources"] == {"limits": {"nvidia.com/gpu": each}}
    assert "resources" not in container(found.job.launcher.template)


def test_replicas_take_their_slots_from_the_template(read_old: Callable[..., ReadJob]) -> None:
    place = "template.spec.containers.0.resources"
    resources = {"limits": {"cpu": "4", "memory": "1Gi"}, "requests": {"cpu": 2}}
    changes = {"gpus": ..., "replicas": 3, "processingResourceType": "cpu", place: resources}
    found = read_old("v1alpha1", changes)
    assert (found.job.workers, found.job.slots_per_worker) == (3, 4)
    resources = container(worker_of(found).template)["resources"]
    assert resources == {"limits": {"cpu": 4, "memory": "1Gi"}, "requests": {"cpu": 2}}
    assert "resources" not in container(found.job.launcher.template)
    assert read_old("v1alpha1", {"gpus": ..., "replicas": 3}).job.slots_per_worker == 1
    assert read_old("v1alpha1", {**changes, "slotsPerWorker": 2}).job.slots_per_worker == 2


def test_an_installations_own_number_of_gpus_counts(old: Callable[..., Manifest]) -> None:
    job = read(old("v1alpha1", {"gpus": 12}), units_per_node=4).job
    assert (job.workers, job.slots_per_worker) == (3, 4)


def test_the_rest_of_v1alpha1(read_old: Callable[..., ReadJob]) -> None:
    found = read_old("v1alpha1", {"activeDeadlineSeconds": 60})
    job = found.job
    assert job.launcher_creation_policy == "WaitForWorkersReady"
    assert (job.launcher.restart_policy, worker_of(found).restart_policy) == ("OnFailure", "Always")
    assert job.run_policy == RunPolicy("All", backoff_limit=6, active_deadline_seconds=60)
    job = read_old("v1alpha1", {"backoffLimit": 0, "template.spec.restartPolicy": "Never"}).job
    assert (job.launcher.restart_policy, job.run_policy.backoff_limit) == ("Never", 0)


def test_the_command_is_the_launchers_alone(plan_old: Callable[..., Plan]) -> None:
    # Without one the launcher's image runs its own.
    assert "command" not in launcher_container(plan_old("v1alpha1"))
    place = "template.spec.containers.0"
    plan = plan_old("v1alpha1", {f"{place}.command": ["mpirun"], f"{place}.args": ["train"]}, "me/benchmarks")
    launcher, worker = launcher_container(plan), container(plan.workers[0])
    assert (launcher["command"], launcher["args"]) == (["mpiboot", "launch", "--", "mpirun"], ["train"])
    assert worker["command"] == ["mpiboot", "worker"]
    assert "args" not in worker


def test_a_launcher_on_a_masters_node(plan_old: Callable[..., Plan]) -> None:
    plan = plan_old("v1alpha1", {"launcherOnMaster": True})
    spec = plan.launcher["spec"]["template"]["spec"]
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    labels = [term["matchExpressions"][0]["key"] for term in required["nodeSelectorTerms"]]
    assert labels == ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"]
    assert [toleration["key"] for toleration in spec["tolerations"]] == labels
    assert "affinity" not in plan.workers[0]["spec"]
