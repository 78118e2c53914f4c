"""Whose image it is, and what follows: who waits, who starts sshd, which keys are checked, which modes they have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.images.build.publish import remote_tag
from mpiboot.images.matrix import load
from mpiboot.job.plan.sshd import Needs, command
from mpiboot.job.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.job.plan.plan import Plan

IMAGES = {
    "mpiboot/openmpi": True,
    "mpiboot/openmpi:latest": True,
    "registry.example:5000/team/mpiboot/openmpi-cuda:1.2": True,
    "mpiboot/intel@sha256:0123abcd": True,
    "mpiboot/mpich:1.0@sha256:0123abcd": True,
    "notmpiboot/openmpi": False,
    "ghcr.io/me/mpiboot-openmpi": True,
    "ghcr.io/me/mpiboot-horovod-torch:0.28.1": True,
    "me/mpiboot-mpich-dev@sha256:0123abcd": True,
    "ghcr.io/me/openmpi": False,
    "ghcr.io/me/mpiboot-solver": False,
    "ghcr.io/me/mpiboot-openmpicall": False,
    "mpiboot-like/openmpi": False,
    "mpioperator/mpi-pi:openmpi": False,
    "me/mpiboot": False,
    "mpiboot/openmpi/mine": False,
    "": False,
}


@pytest.mark.parametrize(("image", "own"), IMAGES.items())
def test_our_images_are_known_by_name(image: str, own: bool) -> None:
    assert Settings().is_own(image) is own


REGISTRIES = ["localhost:5000", "ghcr.io/me", "registry.example/team/mpiboot"]


@pytest.mark.parametrize("registry", REGISTRIES)
def test_every_image_of_the_matrix_is_known_under_the_name_that_a_push_gives_it(registry: str) -> None:
    rows = [row for row in load().rows.values() if row.runs_mpi]
    assert rows
    assert [row.name for row in rows if not Settings().is_own(remote_tag(f"{row.repository}:1.2", registry))] == []


def test_an_image_that_was_looked_into_is_known_too() -> None:
    assert Settings(own_images=frozenset({"me/app"})).is_own("me/app")
    assert not Settings(own_image_pattern="(?!)").is_own("mpiboot/openmpi")


LAUNCHER, WORKER = "Launcher.template.spec.containers.0", "Worker.template.spec.containers.0"
OUR_LAUNCHER = {f"{LAUNCHER}.image": "mpiboot/openmpi:1"}
OUR_WORKER = {f"{WORKER}.image": "mpiboot/openmpi:1"}
SAME_FOREIGN = {f"{LAUNCHER}.image": "me/app", f"{WORKER}.image": "me/app"}
RUN = {f"{LAUNCHER}.command": ["mpirun", "./a"]}
SSHD = {f"{WORKER}.command": ["/usr/sbin/sshd", "-De"]}


def annotated(**values: str) -> dict[str, Any]:
    """Annotations of ours."""
    return {"metadata.annotations": {f"mpiboot.dev/{name.replace('_', '-')}": value for name, value in values.items()}}


Case = tuple[dict[str, Any], dict[str, Any], str, list[str] | None]
PREFIX = ["mpiboot", "launch", "--"]
GUARD = ["/bin/sh", "/etc/mpi/wait_for_workers.sh"]
ARGUMENTS = f"{LAUNCHER}.args"
WAITS: dict[str, Case] = {
    "ours": (OUR_LAUNCHER | RUN, {}, "in-place", [*PREFIX, "mpirun", "./a"]),
    "ours without command: its entrypoint does it": (OUR_LAUNCHER, {}, "in-place", None),
    "ours with arguments only": (OUR_LAUNCHER | {f"{LAUNCHER}.args": ["mpirun", "./a"]}, {}, "in-place", None),
    "foreign": (RUN, {}, "guard", [*GUARD, "mpirun", "./a"]),
    "foreign without command: its own may be anything": ({}, {}, "gate", None),
    "foreign with arguments for a program that is its entrypoint": ({ARGUMENTS: ["-n", "2", "./a"]}, {}, "gate", None),
    "foreign with one argument, perhaps for a shell": ({ARGUMENTS: ["mpirun"]}, {}, "gate", None),
    "foreign, elastic: its list of hosts is a file": (
        {f"{LAUNCHER}.command": ["horovodrun", "--host-discovery-script", "/etc/mpi/discover_hosts.sh", "./a"]}, {},
        "gate", ["horovodrun", "--host-discovery-script", "/etc/mpi/discover_hosts.sh", "./a"]),
    "foreign with a mount of its own in the script's place": (
        RUN | {f"{LAUNCHER}.volumeMounts": [{"name": "mine", "mountPath": "/etc/mpi/"}]}, {}, "gate",
        ["mpirun", "./a"]),
    "foreign, gated": (RUN | annotated(launch="gate"), {}, "gate", ["mpirun", "./a"]),
    "ours, with the script": (OUR_LAUNCHER | RUN | annotated(launch="guard"), {}, "guard", [*GUARD, "mpirun", "./a"]),
    "foreign, said to hold mpiboot": (RUN | annotated(launch="in-place"), {}, "in-place", [*PREFIX, "mpirun", "./a"]),
    "foreign that calls mpiboot": (
        {f"{LAUNCHER}.command": ["/opt/bin/mpiboot", "launch", "mpirun"]},
        {},
        "in-place",
        ["/opt/bin/mpiboot", "launch", "mpirun"],
    ),
    "ours, not to wait": (OUR_LAUNCHER | RUN | annotated(launch="off"), {}, "off", ["mpirun", "./a"]),
    "ours, gated": (OUR_LAUNCHER | RUN | annotated(launch="gate"), {}, "gate", ["mpirun", "./a"]),
    "an unknown value": (RUN | annotated(launch="please"), {}, "guard", [*GUARD, "mpirun", "./a"]),
    "known by a look inside": (RUN, {"own_images": frozenset({"me/app"})}, "in-place", [*PREFIX, "mpirun", "./a"]),
    "with a number for a word": (
        OUR_LAUNCHER | {f"{LAUNCHER}.command": ["mpirun", "-n", 2]}, {}, "in-place", [*PREFIX, "mpirun", "-n", "2"]),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "settings", "waits", "command"), WAITS.values(), ids=WAITS)
def test_where_a_job_waits_for_its_workers(
    plan_small: Callable[..., Plan],
    changes: dict[str, Any],
    settings: dict[str, Any],
    waits: str,
    command: list[str] | None,
) -> None:
    plan = plan_small(changes, **settings)
    spec = plan.launcher["spec"]["template"]["spec"]
    assert plan.arrangement.launch_mode == waits
    assert spec["containers"][0].get("command") == command
    assert spec.get("schedulingGates") == ([{"name": "mpiboot.dev/workers"}] if waits == "gate" else None)
    # Only a gate looks at the workers' readiness, so only it needs workers to have one.
    assert ("startupProbe" in plan.workers[0]["spec"]["containers"][0]) is (waits == "gate")
    assert plan.service["spec"]["publishNotReadyAddresses"] is (waits in {"guard", "gate"})
    assert ("wait_for_workers.sh" in plan.config_map["data"]) is (waits == "guard")


BEHIND: dict[str, tuple[list[str], bool]] = {
    "a program": (["mpirun", "-n", "2", "./a"], False),
    "a program by its path": (["/opt/mpi/bin/mpiexec.hydra", "./a"], False),
    "a shell": (["/bin/bash", "-c", "mpirun ./a"], False),
    "any words, if the job says that its entrypoint runs them": (["python", "a.py"], True),
}


@pytest.mark.parametrize(("arguments", "said"), BEHIND.values(), ids=BEHIND)
def test_arguments_that_begin_with_a_program_wait_behind_the_images_entrypoint(
    plan_small: Callable[..., Plan], arguments: list[str], said: bool
) -> None:
    plan = plan_small({ARGUMENTS: arguments} | (annotated(launch="guard") if said else {}))
    container = plan.launcher["spec"]["template"]["spec"]["containers"][0]
    assert (plan.arrangement.launch_mode, container.get("command")) == ("guard", None)
    assert container["args"] == [*GUARD, *arguments]


def test_a_launcher_that_gets_ssh_gets_a_shell_too(plan_small: Callable[..., Plan]) -> None:
    plan = plan_small(RUN | annotated(ssh="delivered"), delivery_image="mpiboot/delivery")
    command = plan.launcher["spec"]["template"]["spec"]["containers"][0]["command"]
    assert command[:3] == ["/opt/mpiboot-ssh/bin/busybox", "sh", "/etc/mpi/wait_for_workers.sh"]



def sshd(directory: str = "", needs: Needs | None = None) -> list[str]:
    """The command of workers that have none, with the job's host key if its directory is named."""
    return command(directory or "/root/.ssh", verify=bool(directory), needs=needs or Needs("me/app", client=True))


WORKERS: dict[str, tuple[dict[str, Any], list[str] | None, str]] = {
    "ours: its entrypoint serves": (OUR_WORKER, None, "verify"),
    "ours with a command": (OUR_WORKER | SSHD, ["/usr/sbin/sshd", "-De"], "verify"),
    "foreign without command": ({}, sshd("/root/.ssh"), "verify"),
    "foreign in a directory with a space": (
        {"spec.sshAuthMountPath": "/my keys"},
        sshd("/my keys"),
        "verify",
    ),
    "foreign with its own sshd": (SSHD, ["/usr/sbin/sshd", "-De"], "off"),
    "foreign with arguments for its entrypoint": ({f"{WORKER}.args": ["serve"]}, None, "off"),
    "foreign with its own sshd that has our key": (
        SSHD | annotated(host_keys="verify"), ["/usr/sbin/sshd", "-De"], "verify"),
    "foreign, not to be verified": (annotated(host_keys="off"), sshd(), "off"),
    "ours, not to be verified": (OUR_WORKER | annotated(host_keys="off"), None, "off"),
    "built from ours: the launcher's annotation says so": (SAME_FOREIGN | annotated(launch="in-place"), None, "verify"),
    "built from ours: the launcher's command says so": (
        SAME_FOREIGN | {f"{LAUNCHER}.command": ["mpiboot", "launch", "mpirun"]}, None, "verify"),
    "another image than the launcher's": (
        {f"{WORKER}.image": "me/other"} | annotated(launch="in-place"),
        sshd("/root/.ssh", Needs("me/other")), "verify"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "command", "host_keys"), WORKERS.values(), ids=WORKERS)
def test_what_workers_run_and_whether_they_are_verified(
    plan_small: Callable[..., Plan], changes: dict[str, Any], command: list[str] | None, host_keys: str
) -> None:
    plan = plan_small(changes)
    assert plan.workers[0]["spec"]["containers"][0].get("command") == command
    launcher = plan.launcher["spec"]["template"]["spec"]
    found = {entry["name"]: entry.get("value") for entry in launcher["containers"][0]["env"]}
    files = [item["path"] for item in launcher["volumes"][0]["secret"]["items"]]
    assert found["MPIBOOT_HOST_KEYS"] == host_keys
    assert ("known_hosts" in files) is (host_keys == "verify")


def user(uid: int, *, where: str = "containers.0.") -> dict[str, Any]:
    return {f"{role}.template.spec.{where}securityContext": {"runAsUser": uid} for role in ("Launcher", "Worker")}


HOME = {"spec.sshAuthMountPath": "/home/me/.ssh"}
MODES: dict[str, tuple[dict[str, Any], int]] = {
    "unknown user, root's home": ({}, 0o600),
    "unknown user, below root's home": ({"spec.sshAuthMountPath": "/root/keys/ssh"}, 0o600),
    "unknown user, another home": (HOME, 0o444),
    "unknown user, a name like root's home": ({"spec.sshAuthMountPath": "/rootless/.ssh"}, 0o444),
    "root in another home": (HOME | user(0), 0o600),
    "a user in root's home": (user(1000), 0o444),
    "a user by the pod's context": (user(1000, where=""), 0o444),
    "root by the pod's context": (HOME | user(0, where=""), 0o600),
    "the container's context wins": (user(1000) | user(0, where=""), 0o444),
    "our images copy the key first": (OUR_LAUNCHER | OUR_WORKER, 0o444),
    "our images as root": (OUR_LAUNCHER | OUR_WORKER | user(0), 0o444),
    "our images left to themselves": (
        OUR_LAUNCHER | OUR_WORKER | SSHD | annotated(launch="off"), 0o600),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "mode"), MODES.values(), ids=MODES)
def test_modes_of_private_keys(plan_small: Callable[..., Plan], changes: dict[str, Any], mode: int) -> None:
    plan = plan_small(changes)
    for pod in (plan.launcher["spec"]["template"], *plan.workers):
        secret = pod["spec"]["volumes"][0]["secret"]
        assert secret["defaultMode"] == 0o444
        assert {item["path"]: item["mode"] for item in secret["items"]} == {
            item["path"]: mode if item["path"] == "id_rsa" else 0o444 for item in secret["items"]
        }


def test_a_key_for_an_unknown_user_is_there_for_root_and_for_others(plan_small: Callable[..., Plan]) -> None:
    def modes(plan: Plan) -> list[dict[str, int]]:
        pods = (plan.launcher["spec"]["template"], *plan.workers)
        found = [pod["spec"]["volumes"][0]["secret"]["items"] for pod in pods]
        private = [[item for item in items if item["key"].endswith("privatekey")] for items in found]
        return [{item["path"]: item["mode"] for item in items} for items in private]

    assert modes(plan_small()) == 3 * [{"id_rsa": 0o600, "any-user/id_rsa": 0o444}]
    assert modes(plan_small(user(0))) == 3 * [{"id_rsa": 0o600}]
    assert modes(plan_small(user(1000))) == 3 * [{"id_rsa": 0o444}]
    assert modes(plan_small(HOME)) == 3 * [{"id_rsa": 0o444}]


def test_workers_log_in_to_each_other_only_when_asked(plan_small: Callable[..., Plan]) -> None:
    def files(pod: Any) -> dict[str, str]:  # noqa: ANN401
        return {item["path"]: item["key"] for item in pod["spec"]["volumes"][0]["secret"]["items"]}

    client = {"id_rsa": "ssh-privatekey", "id_rsa.pub": "ssh-publickey", "authorized_keys": "ssh-publickey"}
    apart, together = plan_small(user(1000)), plan_small(user(1000) | annotated(worker_ssh="on"))
    assert files(apart.workers[0]) == {
        "id_rsa": "host-privatekey", "id_rsa.pub": "host-publickey", "authorized_keys": "ssh-publickey",
    }  # fmt: skip
    assert files(apart.launcher["spec"]["template"]) == {**client, "known_hosts": "known_hosts"}
    for pod in (*together.workers, together.launcher["spec"]["template"]):
        assert files(pod) == {**client, "known_hosts": "known_hosts"}
    # One pair for all is then also the hosts' pair.
    assert together.secret["data"]["known_hosts"] != apart.secret["data"]["known_hosts"]
