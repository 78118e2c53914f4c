"""The environment of launchers and workers, by runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.job.plan.plan import Plan

HOSTFILE = "/etc/mpi/hostfile"
SSH = "-o ConnectionAttempts=10"


def env(pod: Any) -> dict[str, Any]:  # noqa: ANN401
    """A pod's variables. Each name must be there once only."""
    entries = pod["spec"]["containers"][0]["env"]
    assert len({entry["name"] for entry in entries}) == len(entries)
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in entries}


def launcher_env(plan: Plan) -> dict[str, Any]:
    return env(plan.launcher["spec"]["template"])


COMMON = {
    "K_MPI_JOB_ROLE": "launcher",
    "MPIBOOT_JOB": "default/pi",
    "MPIBOOT_SSH_DIR": "/root/.ssh",
    "MPIBOOT_HOSTFILE": HOSTFILE,
    "MPIBOOT_ADDRESSES": "/etc/mpiboot/addresses",
    "MPIBOOT_HOST_KEYS": "verify",
    "NVIDIA_VISIBLE_DEVICES": "",
    "NVIDIA_DRIVER_CAPABILITIES": "",
}
RUNTIMES = {
    "OpenMPI": {
        # Open MPI 4
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_default_hostfile": HOSTFILE,
        "OMPI_MCA_orte_set_default_slots": "3",
        "OMPI_MCA_plm_rsh_args": SSH,
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        # Open MPI 5
        "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
        "PRTE_MCA_prte_default_hostfile": HOSTFILE,
        "PRTE_MCA_prte_set_default_slots": "3",
        "PRTE_MCA_plm_ssh_args": SSH,
        "PRTE_MCA_hwloc_default_binding_policy": "none",
        "PRTE_MCA_odls_base_max_threads": "0",
    },
    "Intel": {
        "I_MPI_HYDRA_HOST_FILE": HOSTFILE,
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": SSH,
        "I_MPI_PERHOST": "3",
    },
    "MPICH": {
        "HYDRA_HOST_FILE": HOSTFILE,
        "HYDRA_LAUNCH_EXTRA_ARGS": SSH,
        "HYDRA_LAUNCHER_EXTRA_ARGS": SSH,
    },
}


@pytest.mark.parametrize("implementation", RUNTIMES)
def test_launchers_variables(plan_small: Callable[..., Plan], implementation: str) -> None:
    plan = plan_small({"spec.mpiImplementation": implementation, "spec.slotsPerWorker": 3})
    assert launcher_env(plan) == COMMON | RUNTIMES[implementation]


FLAT = {
    "OpenMPI": (64, {"OMPI_MCA_plm_rsh_no_tree_spawn": "1", "PRTE_MCA_plm_ssh_no_tree_spawn": "1"}),
    "Intel": (16, {"I_MPI_HYDRA_BRANCH_COUNT": "0"}),
}


@pytest.mark.parametrize(("implementation", "largest", "flat"), [(name, *rest) for name, rest in FLAT.items()])
def test_with_many_hosts_daemons_start_without_a_tree(
    plan_small: Callable[..., Plan], implementation: str, largest: int, flat: dict[str, str]
) -> None:
    runtime = {"spec.mpiImplementation": implementation}
    few = launcher_env(plan_small(runtime, workers=largest))
    many = launcher_env(plan_small(runtime, workers=largest + 1))
    with_launcher = launcher_env(plan_small(runtime | {"spec.runLauncherAsWorker": True}, workers=largest))
    assert not few.keys() & flat.keys()
    assert many == few | flat
    assert flat.items() <= with_launcher.items()


def test_a_launcher_that_works_keeps_its_gpus(plan_small: Callable[..., Plan]) -> None:
    found = launcher_env(plan_small({"spec.runLauncherAsWorker": True}))
    assert not any(name.startswith("NVIDIA") for name in found)


def test_the_users_variables_come_first_and_win_over_the_usual_ones(plan_small: Callable[..., Plan]) -> None:
    mine = [
        {"name": "MINE", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "PRTE_MCA_hwloc_default_binding_policy", "value": "core"},
        {"name": "K_MPI_JOB_ROLE", "value": "chief"},
        {"name": "OMPI_MCA_orte_default_hostfile", "value": "/mine"},
    ]
    plan = plan_small({"Launcher.template.spec.containers.0.env": mine})
    entries = plan.launcher["spec"]["template"]["spec"]["containers"][0]["env"]
    found = launcher_env(plan)
    assert entries[:2] == mine[:2]
    assert found["PRTE_MCA_hwloc_default_binding_policy"] == "core"
    assert found["K_MPI_JOB_ROLE"] == "launcher"
    assert found["OMPI_MCA_orte_default_hostfile"] == HOSTFILE


URLS = ("http://10.0.0.1:8080", "http://10.0.0.2:8080")
TOKEN = {"secretKeyRef": {"name": "pi-ssh", "key": "token"}}
OURS = {
    "Launcher.template.spec.containers.0.image": "mpiboot/openmpi:1",
    "Worker.template.spec.containers.0.image": "mpiboot/openmpi:1",
    "metadata.uid": "u-1",
}


def test_our_images_get_the_addresses_of_the_check_in(plan_small: Callable[..., Plan]) -> None:
    plan = plan_small(OURS, checkin_urls=URLS)
    assert env(plan.workers[1]) == {
        "K_MPI_JOB_ROLE": "worker",
        "MPIBOOT_JOB": "default/pi",
        "MPIBOOT_UID": "u-1",
        "MPIBOOT_SSH_DIR": "/root/.ssh",
        "MPIBOOT_CHECKIN": "http://10.0.0.1:8080 http://10.0.0.2:8080",
        "MPIBOOT_TOKEN": TOKEN,
        "MPIBOOT_POD_UID": {"fieldRef": {"fieldPath": "metadata.uid"}},
        "MPIBOOT_POD_IP": {"fieldRef": {"fieldPath": "status.podIP"}},
        "MPIBOOT_INDEX": "1",
    }
    found = launcher_env(plan)
    assert found["MPIBOOT_CHECKIN"] == " ".join(URLS)
    assert found["MPIBOOT_TOKEN"] == TOKEN
    assert "MPIBOOT_POD_UID" not in found


@pytest.mark.parametrize(("changes", "urls"), [(OURS, ()), ({}, URLS)], ids=["no service", "other makers' images"])
def test_no_other_container_gets_the_token(
    plan_small: Callable[..., Plan], changes: dict[str, Any], urls: tuple[str, ...]
) -> None:
    plan = plan_small(changes, checkin_urls=urls)
    for found in (launcher_env(plan), *map(env, plan.workers)):
        assert not {"MPIBOOT_CHECKIN", "MPIBOOT_TOKEN", "MPIBOOT_POD_UID", "MPIBOOT_POD_IP"} & found.keys()
