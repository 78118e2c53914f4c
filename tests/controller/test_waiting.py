"""The launcher waits for its workers, and the status shows why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.controller.conftest import eventually, holds

if TYPE_CHECKING:
    from tests.controller.conftest import World

GATE = "mpiboot.dev/workers"


def gates(world: World, name: str) -> list[str]:
    pod = world.get("Pod", name)
    assert pod
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", ())]


def test_the_gate_opens_when_all_workers_are_ready(world: World) -> None:
    world.submit()
    world.started()
    name = world.launcher_pod()["metadata"]["name"]
    first, second = world.workers()
    ready = [{"type": "Ready", "status": "True"}]
    world.phase(first, "Running", conditions=ready)
    eventually("one ready worker", lambda: world.status().get("workers") == "1/2")
    assert gates(world, name) == [GATE]
    assert world.status()["state"] == "Waiting"
    world.phase(second, "Running", conditions=ready)
    eventually("an open gate", lambda: gates(world, name) == [])
    eventually("the state", lambda: world.status().get("state") == "Starting")


@pytest.mark.parametrize("names", ["known", "never known"])
def test_the_gate_waits_until_dns_knows_the_workers(world: World, names: str) -> None:
    """DNS knows a worker a moment after its pod is ready. Some clusters make names without EndpointSlices."""
    world.submit()
    world.started()
    name = world.launcher_pod()["metadata"]["name"]
    for worker in world.workers():
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        world.patch("Pod", worker["metadata"]["name"], {"status": ready}, "status")
    eventually("ready workers", lambda: world.status().get("workers") == "2/2")
    holds(lambda: gates(world, name) == [GATE], 1)
    if names == "known":
        for worker in world.workers():
            world.named(worker)
    eventually("an open gate", lambda: gates(world, name) == [])


@pytest.mark.parametrize("policy", ["AtStartup", "WaitForWorkersReady"])
def test_the_next_attempt_of_a_launcher_waits_for_a_lost_worker(world: World, policy: str) -> None:
    world.submit(launcherCreationPolicy=policy)
    eventually("workers", lambda: len(world.workers()) == 2)
    world.run_workers(ready=True)
    world.started()
    first = world.launcher_pod()
    eventually("an open gate", lambda: gates(world, first["metadata"]["name"]) == [])
    world.delete("Pod", "job-worker-1")
    eventually("a new worker", lambda: len(world.workers()) == 2)
    world.phase(first, "Failed")
    second = world.launcher_pod()["metadata"]["name"]
    holds(lambda: gates(world, second) == [GATE], 1)
    world.phase(world.workers()[1], "Running", conditions=[{"type": "Ready", "status": "True"}])
    eventually("an open gate", lambda: gates(world, second) == [])


def test_gates_of_other_controllers_stay(world: World) -> None:
    job = {"name": "main", "image": "mpi-image"}
    template = {"spec": {"containers": [job], "schedulingGates": [{"name": "example.com/mine"}]}}
    world.submit(mpiReplicaSpecs={"Launcher": {"template": template},
                                  "Worker": {"replicas": 1, "template": {"spec": {"containers": [job]}}}})  # fmt: skip
    world.started(1)
    name = world.launcher_pod()["metadata"]["name"]
    assert gates(world, name) == [GATE, "example.com/mine"]
    world.run_workers(ready=True)
    eventually("the other's gate alone", lambda: gates(world, name) == ["example.com/mine"])


def test_launchers_of_our_images_wait_by_themselves_and_receive_addresses(world: World) -> None:
    world.submit(image="mpiboot/openmpi:latest")
    world.started()
    pod = world.launcher_pod()
    assert gates(world, pod["metadata"]["name"]) == []
    for number, worker in enumerate(world.workers()):
        address = f"10.9.8.{number}"
        world.phase(worker, "Running", podIP=address, podIPs=[{"ip": address}])

    def told() -> Any:  # noqa: ANN401
        found = world.get("Pod", pod["metadata"]["name"])
        assert found
        return found["metadata"].get("annotations", {}).get("mpiboot.dev/addresses", "").splitlines()

    wanted = [f"job-worker-{n}.job.{world.namespace}.svc 10.9.8.{n}" for n in range(2)]
    eventually("both addresses", lambda: told() == wanted)


RUNNING: dict[str, Any] = {
    "name": "main", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "started": True,
    "state": {"running": {}},
}  # fmt: skip


def test_a_gate_does_not_wait_for_a_users_readiness_probe(world: World) -> None:
    """Such a probe may begin late and look seldom. The startup probe that the plan adds has seen sshd."""
    job: dict[str, Any] = {"name": "main", "image": "mpi-image"}
    probed = {**job, "readinessProbe": {"tcpSocket": {"port": 2222}, "initialDelaySeconds": 2}}
    world.submit(mpiReplicaSpecs={
        "Launcher": {"template": {"spec": {"containers": [job]}}},
        "Worker": {"replicas": 1, "template": {"spec": {"containers": [probed]}}}})  # fmt: skip
    world.started(1)
    name = world.launcher_pod()["metadata"]["name"]
    worker, = world.workers()
    assert worker["spec"]["containers"][0]["startupProbe"]["periodSeconds"] == 1
    world.phase(worker, "Running", containerStatuses=[{**RUNNING, "started": False}])
    world.named(worker)
    holds(lambda: gates(world, name) == [GATE], 1)
    world.phase(worker, "Running", containerStatuses=[RUNNING])
    eventually("an open gate", lambda: gates(world, name) == [])
    assert world.status()["launcherWaits"] == "gate"


def test_a_foreign_launcher_with_a_command_waits_by_itself_for_workers_that_dns_knows(world: World) -> None:
    job: dict[str, Any] = {"name": "main", "image": "mpi-image"}
    world.submit(mpiReplicaSpecs={
        "Launcher": {"template": {"spec": {"containers": [{**job, "command": ["mpirun", "./a"]}]}}},
        "Worker": {"replicas": 2, "template": {"spec": {"containers": [job]}}}})  # fmt: skip
    world.started()
    name = world.launcher_pod()["metadata"]["name"]
    assert gates(world, name) == []
    workers = world.workers()
    for number, worker in enumerate(workers):
        address = f"10.9.8.{number}"
        world.phase(worker, "Running", podIP=address, podIPs=[{"ip": address}], containerStatuses=[RUNNING])

    def told() -> list[str]:
        found = world.get("Pod", name)
        assert found
        text: str = found["metadata"].get("annotations", {}).get("mpiboot.dev/addresses", "")
        return text.splitlines()

    wanted = [f"job-worker-{n}.job.{world.namespace}.svc 10.9.8.{n}" for n in range(2)]
    holds(lambda: told() == [], 1)
    world.named(workers[1])
    eventually("the address of the worker that has a name", lambda: told() == wanted[1:])
    world.named(workers[0])
    eventually("both addresses", lambda: told() == wanted)
    assert world.status()["launcherWaits"] == "guard"


def test_with_waitforworkersready_there_is_no_launcher_before(world: World) -> None:
    world.submit(launcherCreationPolicy="WaitForWorkersReady")
    world.replicas({"Worker": {}})
    eventually("workers", lambda: len(world.workers()) == 2)
    world.run_workers()
    world.replicas({"Worker": {"active": 2}})
    assert world.launcher() is None
    for worker in world.workers():
        world.phase(worker, "Running", conditions=[{"type": "Ready", "status": "True"}])
    world.replicas({"Launcher": {}, "Worker": {"active": 2}})
    name = world.launcher_pod()["metadata"]["name"]
    eventually("an open gate", lambda: gates(world, name) == [])


def test_the_status_shows_what_a_worker_lacks(world: World) -> None:
    world.submit()
    world.started()
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                     "message": "0/3 nodes are available: insufficient nvidia.com/gpu."}  # fmt: skip
    world.phase(world.workers()[1], "Pending", conditions=[unschedulable])
    wanted = "worker-1: Unschedulable: 0/3 nodes are available: insufficient nvidia.com/gpu."
    eventually("the reason", lambda: world.status().get("reason") == wanted)
    assert world.said("WaitingForWorkers")["message"] == wanted
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}
    container = {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 0, "state": waiting}
    world.phase(world.workers()[0], "Pending", containerStatuses=[container])
    wanted = "worker-0: cannot pull x (and 1 more)"
    eventually("both reasons", lambda: world.status().get("reason") == wanted)


@pytest.mark.parametrize("phase", ["Pending", "Running"])
def test_the_discovery_script_lists_running_workers(world: World, phase: str) -> None:
    world.submit()
    world.started()
    world.phase(world.workers()[1], phase)

    def listed() -> list[str]:
        config = world.get("ConfigMap", "job-config")
        assert config
        lines = config["data"]["discover_hosts.sh"].splitlines()
        return [line for line in lines if line.startswith("echo job-")]

    wanted = [f"echo job-worker-1.job.{world.namespace}.svc"] if phase == "Running" else []
    eventually("the script", lambda: listed() == wanted)


def test_an_image_that_lacks_ssh_ends_the_job_and_the_wait_of_its_launcher(world: World) -> None:
    world.submit()
    world.started()
    name = world.launcher_pod()["metadata"]["name"]
    says = "mpiboot: the image mpi-image has no /usr/sbin/sshd"
    ended = {"exitCode": 78, "reason": "Error", "message": f"{says}\n"}
    state = {"name": "main", "image": "i", "imageID": "", "ready": False, "restartCount": 0}
    world.phase(world.workers()[0], "Failed", containerStatuses=[{**state, "state": {"terminated": ended}}])
    failed = eventually("its failure", lambda: world.condition("Failed"))
    assert (failed["reason"], failed["message"]) == ("ImageLacksSSH", says.removeprefix("mpiboot: "))
    assert gates(world, name) == [GATE]
    eventually("a launcher that is held", lambda: (found := world.launcher()) and found["spec"].get("suspend"))
