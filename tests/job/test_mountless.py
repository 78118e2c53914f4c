"""Which workers mount nothing, and where their keys are instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.job.plan.plan import Plan

SPEC = "Worker.template.spec"
OURS = {f"{SPEC}.containers.0.image": "mpiboot/openmpi:1"}
FOREIGN = {f"{SPEC}.containers.0.image": "me/app"}
KEYS = {"MPIBOOT_HOST_KEY": "host-privatekey", "MPIBOOT_AUTHORIZED_KEYS": "ssh-publickey"}

MOUNT: dict[str, dict[str, Any]] = {
    "a foreign image that is not verified": {
        f"{SPEC}.containers.0.image": "me/app",
        "metadata.annotations": {"mpiboot.dev/host-keys": "off"},
    },
    "a foreign image with a command": {
        f"{SPEC}.containers.0.image": "me/app",
        f"{SPEC}.containers.0.command": ["/usr/sbin/sshd", "-De"],
    },
    "a foreign image that the job declares to hold mpiboot": {
        "metadata.annotations": {"mpiboot.dev/launch": "in-place"},
        "Launcher.template.spec.containers.0.image": "me/app",
        f"{SPEC}.containers.0.image": "me/app",
    },
    "a command": {f"{SPEC}.containers.0.command": ["mpiboot", "worker", "--port", "2223"]},
    "arguments": {f"{SPEC}.containers.0.args": ["/usr/sbin/sshd", "-De"]},
    "a volume": {f"{SPEC}.volumes": [{"name": "data", "emptyDir": {}}]},
    "a service account": {f"{SPEC}.serviceAccountName": "trainer"},
    "a request for the API token": {f"{SPEC}.automountServiceAccountToken": True},
    "an annotation for an injector": {
        "Worker.template.metadata.annotations": {"vault.hashicorp.com/agent-inject": "true"},
    },
    "an init container": {f"{SPEC}.initContainers": [{"name": "first", "image": "me/first"}]},
    "another container": {
        f"{SPEC}.containers": [{"name": "worker", "image": "mpiboot/openmpi:1"}, {"name": "beside", "image": "b"}]
    },
    "ranks that log in to each other": {"metadata.annotations": {"mpiboot.dev/worker-ssh": "on"}},
}


def key_variables(plan: Plan) -> dict[str, str]:
    """Of the workers' variables those that hold keys, and which of the Secret's."""
    env = plan.workers[0]["spec"]["containers"][0]["env"]
    references = {item["name"]: item["valueFrom"]["secretKeyRef"] for item in env if "valueFrom" in item}
    assert {reference["name"] for reference in references.values()} <= {"pi-ssh"}
    return {name: reference["key"] for name, reference in references.items()}


NO_SIDECAR = {"Worker.template.metadata.annotations": {"sidecar.istio.io/inject": "false"}}


@pytest.mark.parametrize("changes", [{}, NO_SIDECAR], ids=["nothing else", "no sidecar"])
def test_a_worker_that_only_serves_mounts_nothing(plan_small: Callable[..., Plan], changes: dict[str, Any]) -> None:
    plan = plan_small(OURS | changes, mount_keys=False)
    pod = plan.workers[0]["spec"]
    assert (pod["volumes"], pod["containers"][0]["volumeMounts"]) == ([], [])
    assert pod["automountServiceAccountToken"] is False
    assert key_variables(plan) == KEYS


def test_a_foreign_worker_that_gets_its_command_from_us_mounts_nothing(plan_small: Callable[..., Plan]) -> None:
    plan = plan_small(FOREIGN, mount_keys=False)
    assert plan.workers[0]["spec"]["volumes"] == []
    assert key_variables(plan) == KEYS
    script = plan.workers[0]["spec"]["containers"][0]["command"][2]
    assert '"$MPIBOOT_HOST_KEY"' in script
    assert "/root/.ssh" not in script


@pytest.mark.parametrize("changes", MOUNT.values(), ids=MOUNT)
def test_any_other_mounts_its_keys(plan_small: Callable[..., Plan], changes: dict[str, Any]) -> None:
    plan = plan_small(OURS | changes, mount_keys=False)
    pod = plan.workers[0]["spec"]
    assert "ssh-auth" in [volume["name"] for volume in pod["volumes"]]
    assert pod.get("automountServiceAccountToken") is not False
    assert key_variables(plan) == {}


def test_who_wants_all_keys_mounted_has_them_mounted(plan_small: Callable[..., Plan]) -> None:
    plan = plan_small(OURS, mount_keys=True)
    assert [volume["name"] for volume in plan.workers[0]["spec"]["volumes"]] == ["ssh-auth"]
    assert key_variables(plan) == {}


def test_a_launcher_mounts_its_keys_as_always(plan_small: Callable[..., Plan]) -> None:
    everything = OURS | {"Launcher.template.spec.containers.0.image": "mpiboot/openmpi:1"}
    pods = [plan_small(everything, mount_keys=mount).launcher for mount in (True, False)]
    assert pods[0] == pods[1]
