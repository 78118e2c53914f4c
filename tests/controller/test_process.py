"""The operator as a process: rights, leader election, exit, and failures around it."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from cluster import api, processes
from cluster.fixtures import Kubernetes
from cluster.home import Home

from tests.controller.conftest import REPOSITORY, Client, World, eventually, holds

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.controller.conftest import Operator

    Start = Callable[..., Operator]

LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"


pytestmark = pytest.mark.usefixtures("unwatched")


@pytest.fixture
def only(bare_world: World) -> tuple[str, ...]:
    """Flags of an operator that watches only its own namespace."""
    return (f"--namespace={bare_world.namespace}", f"--lock-namespace={bare_world.namespace}", "--lease-seconds=4")


@pytest.fixture
def account(api_server: Kubernetes, tmp_path: Path) -> Path:
    """A kubeconfig with the rights that an installation gives, and no others."""
    api_server.kubectl("apply", "--server-side", "-f", str(REPOSITORY / "deploy" / "operator.yaml"))
    token = api_server.kubectl("create", "token", "mpiboot-operator", "--namespace=mpi-operator").strip()
    config = yaml.safe_load(api_server.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def test_the_rights_of_an_installation_are_enough(start_operator: Start, account: Path, bare_world: World) -> None:
    world = bare_world
    flags = (f"--kubeconfig={account}", f"--namespace={world.namespace}", "--lock-namespace=mpi-operator")
    operator = start_operator(*flags)
    world.submit(policy={"suspend": True, "ttlSecondsAfterFinished": 60})
    old = eventually("a launcher", world.launcher)["metadata"]["uid"]
    world.patch("MPIJob", "job", {"spec": {"runPolicy": {"suspend": False, "backoffLimit": 1}}})
    eventually("another launcher", lambda: (world.launcher() or {"metadata": {"uid": old}})["metadata"]["uid"] != old)
    suspend = {"spec": {"runPolicy": {"suspend": True}}}
    world.patch("MPIJob", "job", suspend)
    eventually("a launcher that rests", lambda: (world.launcher() or {})["spec"].get("suspend"))
    world.patch("Job", "job-launcher", {"status": {"startTime": "2026-01-01T00:00:00Z"}}, "status")
    world.patch("MPIJob", "job", {"spec": {"runPolicy": {"suspend": False}}})
    world.started()
    pod = world.launcher_pod()
    world.run_workers(ready=True)
    name = pod["metadata"]["name"]
    eventually("an open gate", lambda: not (world.get("Pod", name) or pod)["spec"].get("schedulingGates"))
    world.phase(pod, "Running")
    world.patch("MPIJob", "job", {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 1}}}})
    eventually("one worker", lambda: len(world.workers()) == 1)
    world.launcher_ends("Complete")
    eventually("no workers", lambda: not world.workers())
    eventually("a TTL", lambda: (world.launcher() or {})["spec"].get("ttlSecondsAfterFinished"))
    world.said("MPIJobSucceeded")
    assert operator.metric("mpi_operator_jobs_successful_total") == 1
    assert operator.metric("mpi_operator_jobs_created_total") == 1
    assert operator.stop(signal.SIGTERM) == 0


def test_those_rights_hold_no_list_of_secrets(account: Path, api_server: Kubernetes) -> None:
    for verb in ("list", "watch", "update", "delete"):
        answer = api_server.try_kubectl("auth", "can-i", verb, "secrets", "--all-namespaces",
                                        "--as=system:serviceaccount:mpi-operator:mpiboot-operator")  # fmt: skip
        assert answer.stdout.strip() == "no", verb
    assert account.exists()


def test_a_new_operator_continues_the_work_of_a_killed_one(
    start_operator: Start, bare_world: World, only: tuple[str, ...]
) -> None:
    world = bare_world
    first = start_operator(*only)
    world.submit()
    world.started()
    secret = world.get("Secret", "job-ssh")
    first.stop(signal.SIGKILL)
    world.run_workers()
    world.launcher_ends("Complete")
    start_operator(*only)
    eventually("no workers", lambda: not world.workers())
    assert world.condition("Succeeded")["status"] == "True"
    after = world.get("Secret", "job-ssh")
    assert secret
    assert after
    assert after["data"] == secret["data"]
    world.said("MPIJobCreated")  # by the second one, if the first was killed before it
    assert len(world.events("MPIJobCreated")) == 1


def test_an_operator_that_a_signal_ends_releases_its_lease_at_once(
    start_operator: Start, bare_world: World, only: tuple[str, ...]
) -> None:
    first = start_operator(*only[:-1], "--lease-seconds=600")
    second = start_operator(*only[:-1], "--lease-seconds=600", ready=False)
    eventually("a second that waits", lambda: _metric(second) == 0)
    holds(lambda: second.metric("mpi_operator_is_leader") == 0, 1)
    assert first.stop(signal.SIGTERM) == 0
    # With a Lease of ten minutes only its release can bring this about. The second looks every 75 s.
    lease = bare_world.client.do("GET", f"{LEASES.format(bare_world.namespace)}/mpiboot-operator")
    assert lease["spec"]["holderIdentity"] == ""
    second.stop(signal.SIGKILL)


def _metric(operator: Operator) -> Any:  # noqa: ANN401
    try:
        return operator.metric("mpi_operator_is_leader")
    except OSError:
        return None


def test_a_leader_that_loses_its_lease_follows_and_leads_again_when_it_is_free(
    start_operator: Start, bare_world: World, only: tuple[str, ...]
) -> None:
    operator = start_operator(*only)
    path = f"{LEASES.format(bare_world.namespace)}/mpiboot-operator"
    stolen = {"spec": {"holderIdentity": "another", "leaseDurationSeconds": 600}}
    bare_world.client.do("PATCH", path, stolen, "application/merge-patch+json")
    eventually("a follower", lambda: _metric(operator) == 0)
    bare_world.submit()
    holds(lambda: operator.process.poll() is None and not bare_world.workers(), 2)
    bare_world.client.do("PATCH", path, {"spec": {"holderIdentity": ""}}, "application/merge-patch+json")
    bare_world.started()
    assert _metric(operator) == 1


def test_the_operator_does_nothing_while_another_one_works(start_operator: Start, bare_world: World) -> None:
    world = bare_world
    start_operator(f"--namespace={world.namespace}", "--no-leader-election", f"--peer-leases={world.namespace}/theirs")
    lease = {"metadata": {"name": "theirs"}, "spec": {"holderIdentity": "them", "leaseDurationSeconds": 12}}
    world.client.do("POST", LEASES.format(world.namespace), lease)
    # It looks every 5 s; this wait is for that, and the next for the end of their 12 s.
    holds(lambda: True, 7)
    world.submit()
    holds(lambda: not world.workers() and world.status() == {}, 3)
    world.started()


def test_a_job_that_mpi_operator_began_continues_with_its_one_key_pair(
    start_operator: Start, bare_world: World, only: tuple[str, ...]
) -> None:
    world = bare_world
    job = world.submit(policy={"backoffLimit": 3})
    owner = {"apiVersion": job["apiVersion"], "kind": "MPIJob", "name": "job", "uid": job["metadata"]["uid"],
             "controller": True}  # fmt: skip
    keys = {"ssh-privatekey": "cHJpdmF0ZQ==", "ssh-publickey": "cHVibGlj"}
    metadata = {"name": "job-ssh", "labels": {"app": "job"}, "ownerReferences": [owner]}
    world.create("Secret", {"metadata": metadata, "type": "kubernetes.io/ssh-auth", "data": keys})
    start_operator(*only)
    job = world.started()
    for pod in (*world.workers(), job["spec"]["template"]):
        volume = next(each for each in pod["spec"]["volumes"] if each["name"] == "ssh-auth")
        assert {item["key"] for item in volume["secret"]["items"]} == keys.keys()
        variables = {each["name"] for each in pod["spec"]["containers"][0]["env"]}
        assert not variables & {"MPIBOOT_TOKEN", "MPIBOOT_CHECKIN"}
    secret = world.get("Secret", "job-ssh")
    assert secret
    assert secret["data"] == keys


def test_an_operator_outlives_a_restart_of_the_api_server(
    start_operator: Start, tmp_path_factory: pytest.TempPathFactory, operator: Operator
) -> None:
    assert operator.process.poll() is None
    home = Home(tmp_path_factory.mktemp("restarted"))
    again: subprocess.Popen[bytes] | None = None
    try:
        api.up(home, dies_with_us=True)
        Kubernetes(home.kubeconfig).kubectl("apply", "--server-side", "-f", str(REPOSITORY / "deploy" / "crd.yaml"))
        client = Client.of(home.kubeconfig)
        world = World(client, "default")
        eventually("the MPIJobs' API", lambda: client.ask("GET", world.path("MPIJob")).ok)
        start_operator(f"--kubeconfig={home.kubeconfig}", "--no-leader-election")
        world.submit(name="before")
        world.started(name="before")
        server = next(each for each in processes.recorded(home) if each.name == "kube-apiserver")
        argv = Path(f"/proc/{server.pid}/cmdline").read_text().split("\0")[:-1]
        os.kill(server.pid, signal.SIGKILL)
        # The port must be free before the next server starts.
        eventually("the API server's end", lambda: not _answers(client, world.path("MPIJob")))
        with (home.logs / "kube-apiserver-again.log").open("wb") as output:
            again = subprocess.Popen(argv, stdout=output, stderr=output)
        eventually("the API server", lambda: _answers(client, world.path("MPIJob")))
        world.submit(name="after")
        world.started(name="after")
        world.run_workers("before")
        world.replicas({"Launcher": {}, "Worker": {"active": 2}}, "before")
        client.close()
    finally:
        if again is not None:
            again.kill()
            again.wait()
        api.down(home)


def _answers(client: Client, path: str) -> bool:
    return client.ask("GET", path).ok


def test_a_kubeconfig_without_a_cluster_is_one_line(mpiboot: Callable[..., Any], tmp_path: Path) -> None:
    empty = tmp_path / "none"
    empty.write_text("apiVersion: v1\nkind: Config\n")
    done = mpiboot("operator", f"--kubeconfig={empty}")
    assert done.returncode == 2
    assert str(empty) in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [["operator"], ["status", "--engine=kubernetes", "job"]])
def test_a_kubeconfig_that_is_not_there_is_one_line(
        mpiboot: Callable[..., Any], tmp_path: Path, command: list[str]) -> None:
    absent = tmp_path / "absent"
    done = mpiboot(*command, env={**os.environ, "KUBECONFIG": str(absent)})
    assert done.returncode == 2
    assert done.stderr.startswith(f"mpiboot: no cluster: there is no file {absent}; set $KUBECONFIG")
    assert done.stderr.count("\n") == 1


def test_one_error_names_all_wrong_settings(mpiboot: Callable[..., Any]) -> None:
    done = mpiboot("operator", "--workers=0", "--own-images=(", "--peer-leases=x")
    assert done.returncode == 2
    for flag in ("--workers", "--own-images", "--peer-leases"):
        assert flag in done.stderr
    assert "Traceback" not in done.stderr
