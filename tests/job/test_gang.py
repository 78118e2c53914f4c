"""Gang scheduling: which pods a scheduler counts, and the PodGroup that it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.job import gang
from mpiboot.job.plan.plan import plan
from mpiboot.job.read.manifest import Manifest
from mpiboot.job.read.read import read
from mpiboot.job.settings import Settings
from tests.job.conftest import change

if TYPE_CHECKING:
    from mpiboot.job.plan.plan import Plan
    from mpiboot.job.plan.ssh_material import SshMaterial

SMALL, LARGE = {"cpu": "250m", "memory": "128Mi"}, {"cpu": 2, "memory": "1Gi", "nvidia.com/gpu": 1}


def manifest(image: str, resources: dict[str, Any]) -> dict[str, Any]:
    containers = [{"name": "main", "image": image, "resources": {"limits": resources}}]
    return {"template": {"spec": {"containers": containers}}}


def planned(material: SshMaterial, scheduler: str = "volcano", *, own: bool = True, **changes: Any) -> Plan:  # noqa: ANN401
    image = "mpiboot/openmpi" if own else "foreign"
    data: dict[str, Any] = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "pi", "namespace": "default", "uid": "uid"},
        "spec": {
            "mpiReplicaSpecs": {
                "Launcher": manifest(image, SMALL),
                "Worker": {"replicas": 3, **manifest(image, LARGE)},
            }
        },
    }
    change(data, {name.replace("__", "."): value for name, value in changes.items()})
    return plan(read(Manifest(data)).job, material, Settings(gang_scheduling=scheduler))


def group(plan: Plan) -> dict[str, Any]:
    assert plan.pod_group is not None
    return dict(plan.pod_group)


def test_all_pods_of_a_job_are_members_of_volcanos_group(material: SshMaterial) -> None:
    made = planned(material)
    found = group(made)
    assert (found["apiVersion"], found["kind"]) == ("scheduling.volcano.sh/v1beta1", "PodGroup")
    assert found["metadata"]["name"] == "pi"
    assert found["metadata"]["ownerReferences"][0]["uid"] == "uid"
    assert found["spec"] == {
        "minMember": 4,
        "minResources": {"cpu": "6250m", "memory": str(3 * 2**30 + 128 * 2**20), "nvidia.com/gpu": "3"},
    }
    for pod in (made.launcher["spec"]["template"], *made.workers):
        assert pod["spec"]["schedulerName"] == "volcano"
        assert pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "pi"


@pytest.mark.parametrize(
    ("setting", "name"), [("scheduler-plugins", "scheduler-plugins-scheduler"), ("my-scheduler", "my-scheduler")]
)
def test_the_scheduler_plugins_have_groups_of_their_own(material: SshMaterial, setting: str, name: str) -> None:
    made = planned(material, setting, spec__runPolicy={"schedulingPolicy": {"scheduleTimeoutSeconds": 90}})
    found = group(made)
    assert found["apiVersion"] == "scheduling.x-k8s.io/v1alpha1"
    assert found["spec"] == {"minMember": 4, "scheduleTimeoutSeconds": 90}
    for pod in (made.launcher["spec"]["template"], *made.workers):
        assert pod["spec"]["schedulerName"] == name
        assert pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "pi"


def test_the_policy_of_a_job_is_passed_on(material: SshMaterial) -> None:
    policy = {"minAvailable": 2, "queue": "gpu", "minResources": {"cpu": 1}, "priorityClass": "high"}
    found = group(planned(material, spec__runPolicy={"schedulingPolicy": policy}))
    assert found["spec"] == {
        "minMember": 2, "minResources": {"cpu": "1"}, "queue": "gpu", "priorityClassName": "high",
    }  # fmt: skip


def test_queue_and_priority_class_have_the_defaults_of_mpi_operator(material: SshMaterial) -> None:
    annotations = {"scheduling.volcano.sh/queue-name": "gpu"}
    made = planned(material, metadata__annotations=annotations, Worker__template__spec__priorityClassName="workers")
    assert group(made)["spec"]["queue"] == "gpu"
    assert group(made)["spec"]["priorityClassName"] == "workers"


@pytest.mark.parametrize(
    ("own", "changes", "members"),
    [
        (True, {}, 4),
        (False, {"metadata__annotations": {"mpiboot.dev/launch": "gate"}}, 3),
        (False, {"metadata__annotations": {"mpiboot.dev/launch": "off"}}, 4),
        (True, {"spec__launcherCreationPolicy": "WaitForWorkersReady"}, 3),
        (True, {"spec__runLauncherAsWorker": True}, 4),
        # An elastic job begins with fewer workers.
        (True, {"Launcher__template__spec__containers__0__env": [{"name": "MPIBOOT_MIN_WORKERS", "value": "2"}]}, 3),
        # A scheduler that waits for more pods than can come would wait for ever.
        (True, {"spec__runPolicy": {"schedulingPolicy": {"minAvailable": 9}}}, 4),
        (
            False,
            {"metadata__annotations": {"mpiboot.dev/launch": "gate"},
             "spec__runPolicy": {"schedulingPolicy": {"minAvailable": 4}}},
            3,
        ),
    ],
)  # fmt: skip
def test_only_pods_that_can_be_scheduled_now_are_waited_for(
    material: SshMaterial, own: bool, changes: dict[str, Any], members: int
) -> None:
    assert group(planned(material, own=own, **changes))["spec"]["minMember"] == members


def test_init_containers_and_sidecars_count_as_the_scheduler_counts_them(material: SshMaterial) -> None:
    init = [
        {"name": "large", "image": "x", "resources": {"requests": {"cpu": 3}}},
        {"name": "sidecar", "image": "x", "restartPolicy": "Always", "resources": {"requests": {"memory": "1Gi"}}},
    ]
    made = planned(material, Worker__replicas=1, Worker__template__spec__initContainers=init)
    resources = group(made)["spec"]["minResources"]
    assert resources == {"cpu": "3250m", "memory": str(2 * 2**30 + 128 * 2**20), "nvidia.com/gpu": "1"}


@pytest.mark.parametrize("amount", ["4gb", "1e999999999", "9" * 5000, "", None, {}, []])
def test_what_is_no_quantity_does_not_count(material: SshMaterial, amount: object) -> None:
    made = planned(material, Worker__template__spec__containers__0__resources={"limits": {"cpu": 1, "memory": amount}})
    assert group(made)["spec"]["minResources"] == {"cpu": "3250m", "memory": str(128 * 2**20)}


@pytest.mark.parametrize(("setting", "annotation"), [("", None), ("", "on"), ("volcano", "off")])
def test_without_a_gang_scheduler_nothing_changes(material: SshMaterial, setting: str, annotation: str | None) -> None:
    annotations = {"mpiboot.dev/gang-scheduling": annotation} if annotation else {}
    made = planned(material, setting, metadata__annotations=annotations)
    assert made.pod_group is None
    for pod in (made.launcher["spec"]["template"], *made.workers):
        assert "schedulerName" not in pod["spec"]
        assert "scheduling.k8s.io/group-name" not in pod["metadata"]["annotations"]


def test_the_names_of_mpi_operators_flag_are_known() -> None:
    assert gang.scheduler("") is None
    assert [getattr(gang.scheduler(name), "name", "") for name in ("volcano", "scheduler-plugins-scheduler")] == [
        "volcano", "scheduler-plugins-scheduler",
    ]  # fmt: skip
