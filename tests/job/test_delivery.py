"""Whose sshd and ssh a job uses: its images' own, or delivered ones; and what a worker says that has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.job.plan.sshd import UNFIT_SAYS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mpiboot.job.plan.plan import Plan

IMAGE = "some/delivery:1"
OLD = {"apiVersion": "kubeflow.org/v1alpha2"}
LAUNCHER, WORKER = "Launcher.template.spec.containers.0", "Worker.template.spec.containers.0"
WISH = {"metadata.annotations": {"mpiboot.dev/ssh": "delivered"}}
SERVE, SSH = "/opt/mpiboot-ssh/bin/serve", "/opt/mpiboot-ssh/bin/ssh"


def worker(plan: Plan) -> Mapping[str, Any]:
    spec: Mapping[str, Any] = plan.workers[0]["spec"]
    return spec


def launcher(plan: Plan) -> Mapping[str, Any]:
    spec: Mapping[str, Any] = plan.launcher["spec"]["template"]["spec"]
    return spec


def variables(spec: Mapping[str, Any]) -> dict[str, str]:
    return {each["name"]: each.get("value") for each in spec["containers"][0]["env"]}


def delivers(spec: Mapping[str, Any]) -> bool:
    """Whether its first init container fills a volume of the main container with the delivery image's programs."""
    first = (spec.get("initContainers") or [{}])[0]
    if first.get("image") != IMAGE:
        return False
    volume, = (mount["name"] for mount in first["volumeMounts"])
    mounts = {mount["name"]: mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]}
    return mounts[volume] == "/opt/mpiboot-ssh" and {"name": volume, "emptyDir": {}} in spec["volumes"]


CASES: dict[str, tuple[dict[str, Any], tuple[bool, bool]]] = {
    "a job of the time before SSH": (OLD, (True, True)),
    "a job of today": ({}, (False, False)),
    "a job of today that asks for it": (WISH, (True, True)),
    "an old job that asks for its image's own": (
        OLD | {"metadata.annotations": {"mpiboot.dev/ssh": "image"}}, (False, False)),
    "an old job that starts an sshd itself": (
        OLD | {f"{WORKER}.command": ["sh", "-c", "exec /usr/sbin/sshd -De"]}, (False, False)),
    "our image on one side": (WISH | {f"{LAUNCHER}.image": "mpiboot/openmpi"}, (False, True)),
    "our images": (WISH | {f"{LAUNCHER}.image": "mpiboot/openmpi", f"{WORKER}.image": "mpiboot/openmpi"},
                   (False, False)),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "expected"), CASES.values(), ids=CASES)
def test_which_pods_get_ssh_delivered(
    plan_small: Callable[..., Plan], changes: dict[str, Any], expected: tuple[bool, bool]
) -> None:
    plan = plan_small(changes, delivery_image=IMAGE)
    assert (delivers(launcher(plan)), delivers(worker(plan))) == expected
    without = plan_small(changes)
    assert not delivers(launcher(without))
    assert not delivers(worker(without))


def test_a_worker_serves_with_the_jobs_keys_and_is_probed_on_its_port(plan_small: Callable[..., Plan]) -> None:
    main = worker(plan_small(WISH | {"spec.sshAuthMountPath": "/keys"}, delivery_image=IMAGE))["containers"][0]
    assert main["command"] == [SERVE, "/keys"]
    assert main["startupProbe"]["tcpSocket"] == {"port": 2222}


def test_a_workers_own_command_runs_beside_the_server(plan_small: Callable[..., Plan]) -> None:
    plan = plan_small(OLD | {f"{WORKER}.command": ["/monitor", 9], f"{WORKER}.args": ["9"]}, delivery_image=IMAGE)
    main = worker(plan)["containers"][0]
    assert (main["command"][0], main["command"][2:], main["args"]) == (SERVE, ["/monitor", "9"], ["9"])


@pytest.mark.parametrize(("runtime", "names"), [
    ("OpenMPI", ["OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent"]),
    ("MPICH", ["HYDRA_LAUNCHER_EXEC"]),
    ("Intel", ["I_MPI_HYDRA_BOOTSTRAP_EXEC"]),
])  # fmt: skip
def test_mpirun_calls_the_delivered_ssh(
    plan_small: Callable[..., Plan], runtime: str, names: list[str]
) -> None:
    plan = plan_small(WISH | {"spec.mpiImplementation": runtime}, delivery_image=IMAGE)
    assert [name for name, value in variables(launcher(plan)).items() if value == SSH] == names
    assert variables(launcher(plan))["MPIBOOT_HOST_KEYS"] == "verify"


def test_the_users_own_init_containers_come_after(plan_small: Callable[..., Plan]) -> None:
    mine = {"name": "mine", "image": "me/app"}
    spec = worker(plan_small(WISH | {"Worker.template.spec.initContainers": [mine]}, delivery_image=IMAGE))
    assert delivers(spec)
    assert spec["initContainers"][1:] == [mine]


def test_without_delivery_a_worker_names_what_its_image_lacks_and_the_fix(plan_small: Callable[..., Plan]) -> None:
    script = worker(plan_small())["containers"][0]["command"][2]
    for program in ("/usr/sbin/sshd", "ssh"):
        assert f"{UNFIT_SAYS}me/app has no {program}," in script
    assert "mpiboot images build openmpi --base me/app --tag TAG" in script


def test_a_client_is_missed_only_where_the_launcher_has_the_same_image(plan_small: Callable[..., Plan]) -> None:
    script = worker(plan_small({f"{LAUNCHER}.image": "another/app"}))["containers"][0]["command"][2]
    assert "has no ssh," not in script
