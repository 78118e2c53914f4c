"""What jobs of all older versions get from the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mpiboot.job import elastic
from mpiboot.job.model import RunPolicy
from tests.job.versions.conftest import container, launcher_container, texts, variables

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.job.plan.plan import Plan
    from mpiboot.job.read.read import ReadJob

IMAGES = {"v1alpha2": "me/tensorflow", "v1": "me/horovod", "v1alpha1": "me/benchmarks"}


@pytest.mark.parametrize("version", IMAGES)
def test_ranks_are_the_hostfiles_slots_and_the_launcher_sees_no_gpu(
    plan_old: Callable[..., Plan], version: str
) -> None:
    plan = plan_old(version)
    job = plan.job
    lines = plan.config_map["data"]["hostfile"].splitlines()
    assert lines == [
        f"{job.name}-worker-{index}.{job.name}.default.svc slots={job.slots_per_worker}"
        for index in range({"v1alpha2": 1, "v1": 2, "v1alpha1": 2}[version])
    ]
    set_here = variables(launcher_container(plan))
    assert (set_here["NVIDIA_VISIBLE_DEVICES"], set_here["NVIDIA_DRIVER_CAPABILITIES"]) == ("", "")
    mounts = {item["path"]: item["mode"] for volume in plan.launcher["spec"]["template"]["spec"]["volumes"]
              for item in volume.get("configMap", {}).get("items", ())}  # fmt: skip
    guard = {"wait_for_workers.sh": 0o555} if plan.arrangement.launch_mode == "guard" else {}
    assert mounts == {"hostfile": 0o444, "discover_hosts.sh": 0o555, **guard}


@pytest.mark.parametrize("version", IMAGES)
def test_the_discovery_script_tells_slots(plan_old: Callable[..., Plan], version: str) -> None:
    plan = plan_old(version)
    host = f"{plan.job.name}-worker-0.{plan.job.name}.default.svc:{plan.job.slots_per_worker}"
    assert f"echo {host}\n" in plan.config_map["data"]["discover_hosts.sh"]


@pytest.mark.parametrize("version", IMAGES)
def test_pods_carry_the_labels_that_old_selectors_ask_for(plan_old: Callable[..., Plan], version: str) -> None:
    plan = plan_old(version)
    launcher, worker = plan.launcher["spec"]["template"]["metadata"]["labels"], plan.workers[1 % len(plan.workers)]
    name = plan.job.name
    assert {"group_name": "kubeflow.org", "mpi_job_name": name, "mpi_role_type": "launcher"}.items() <= launcher.items()
    assert {"group-name": "kubeflow.org", "mpi-job-name": name, "mpi-job-role": "launcher"}.items() <= launcher.items()
    labels = worker["metadata"]["labels"]
    assert {"mpi_role_type": "worker", "mpi-job-role": "worker"}.items() <= labels.items()
    assert labels["replica-index"] == str(1 % len(plan.workers))


@pytest.mark.parametrize("version", IMAGES)
def test_a_worker_without_a_command_serves_ssh(plan_old: Callable[..., Plan], version: str) -> None:
    foreign, ours = plan_old(version), plan_old(version, image=IMAGES[version])
    assert container(foreign.workers[0])["command"][:2] == ["/bin/sh", "-c"]
    assert "/usr/sbin/sshd" in container(foreign.workers[0])["command"][2]
    # Told even where the entrypoint would do the same: an image made of ours may have a command for its launcher.
    assert container(ours.workers[0])["command"] == ["mpiboot", "worker"]


@pytest.mark.parametrize("version", IMAGES)
def test_keys_are_roots_unless_the_job_says_otherwise(plan_old: Callable[..., Plan], version: str) -> None:
    def paths(plan: Plan) -> set[str]:
        all_of_them = (plan.launcher["spec"]["template"], *plan.workers)
        mounts = [mount for pod in all_of_them for mount in container(pod)["volumeMounts"]]
        return {mount["mountPath"] for mount in mounts if mount["name"] == "ssh-auth"}

    assert paths(plan_old(version)) == {"/root/.ssh"}
    assert paths(plan_old(version, image=IMAGES[version])) == {"/root/.ssh"}
    assert paths(plan_old(version, {"sshAuthMountPath": "/home/user/.ssh"})) == {"/home/user/.ssh"}


def test_the_charts_job_is_elastic(read_old: Callable[..., ReadJob]) -> None:
    found = read_old("v1")
    assert texts(found) == []
    assert elastic.of_job(found.job) == elastic.Elastic(2, 1, 3)
    assert found.job.run_policy == RunPolicy("Running")
