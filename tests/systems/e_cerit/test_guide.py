"""A computing centre's guide, followed to the letter: a Dockerfile of one's own, a manifest, kubectl create."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import REPOSITORY
from tests.foreign.build import FOREIGN, build

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    import docker
    from cluster.fixtures import Cluster

    from tests.systems.shell import Shell

HERE = Path(__file__).parent
NAME = "mpi-test"
POD = "training.kubeflow.org/job-name=mpi-test"
ONE_IS_LATE = "case $(hostname) in *-worker-1) sleep 12;; esac"


@pytest.fixture(scope="module")
def built(docker_engine: docker.DockerClient, image: Callable[[str], str]) -> str:
    """The reader's image: the guide's Dockerfile, and a program that computes pi."""
    image("openmpi-dev")
    guide = build(docker_engine, FOREIGN / "guide")
    return build(docker_engine, HERE, context=REPOSITORY / "examples" / "pi", base=guide, tag="e-cerit")


@pytest.fixture
def manifest(built: str, cluster: Cluster) -> Callable[..., str]:
    """The guide's manifest with the reader's image, program and number of ranks."""

    def written(command: str = "/home/user/pi", *, ranks: int = 2, slots: int = 1) -> str:
        text = (HERE / "mpijob.yaml").read_text().replace("COMMAND", command)
        text = text.replace("slotsPerWorker: 1", f"slotsPerWorker: {slots}").replace('"2"', f'"{ranks}"')
        # The node has no registry to ask for `latest`; a reader's image has a tag of its own.
        return text.replace("IMAGE", f"{cluster.load(built)}\n            imagePullPolicy: IfNotPresent")

    return written


def hosts(output: str) -> Counter[str]:
    """How many ranks ran on each host, in the output of a program whose ranks all added to pi."""
    assert "pi is about 3.14159265" in output, output
    return Counter(re.findall(r"^rank \d+ of \d+ on (\S+)$", output, re.MULTILINE))


def launcher_starts(shell: Shell) -> int:
    """How often a launcher's container was started, over all pods of the job, by Kubernetes' own events."""
    events = shell.json("kubectl get events -o json --field-selector reason=Started,involvedObject.kind=Pod")["items"]
    return sum(each.get("count") or 1 for each in events
               if each["involvedObject"]["name"].startswith(f"{NAME}-launcher"))


@pytest.mark.promise("E: an image built by the guide works unchanged")
@pytest.mark.promise("E: kubectl create -f mpijob.yaml -n NAMESPACE runs the guide's manifest unchanged")
@pytest.mark.promise("E: each worker has as many ranks as slotsPerWorker")
@pytest.mark.parametrize(("slots", "ranks"), [(1, 2), (2, 4)])
def test_the_manifest_runs_one_rank_for_each_slot(
        shell: Shell, manifest: Callable[..., str], slots: int, ranks: int) -> None:
    shell("kubectl create -f - -n $NAMESPACE", given=manifest(slots=slots, ranks=ranks))
    output = follow(shell)
    assert shell.ended(NAME) == "Succeeded", shell.report()
    assert hosts(output) == {f"{NAME}-worker-0": slots, f"{NAME}-worker-1": slots}


@pytest.mark.promise("E: no failing launcher while the workers come up")
def test_no_launcher_fails_though_a_worker_is_late(shell: Shell, manifest: Callable[..., str], built: str) -> None:
    late = f"""\
          initContainers:
          - {{name: late, image: {built}, imagePullPolicy: IfNotPresent, command: [sh, -c, "{ONE_IS_LATE}"]}}
"""
    head, worker = manifest().split("    Worker:\n")
    place = "        spec:\n"
    shell("kubectl create -f - -n $NAMESPACE", given=f"{head}    Worker:\n{worker.replace(place, place + late)}")
    output = follow(shell)
    assert shell.ended(NAME) == "Succeeded", shell.report()
    assert len(hosts(output)) == 2
    assert launcher_starts(shell) == 1
    status = shell.json(f"kubectl get mpijob {NAME} -o json")["status"]
    assert not status["replicaStatuses"]["Launcher"].get("failed")


@pytest.mark.promise("E: all processes run as user 1000")
def test_all_processes_run_as_user_1000(shell: Shell, manifest: Callable[..., str]) -> None:
    stays = "id -u; until [ -e /tmp/looked ]; do sleep 0.2; done"
    text = manifest("sh").replace("- sh\n", f"- sh\n            - -c\n            - '{stays}'\n")
    shell("kubectl create -f - -n $NAMESPACE", given=text)
    shell.until("both ranks", lambda: follow(shell, wait=False).splitlines().count("1000") == 2)
    pods = shell(f"kubectl get pods -l {POD} -o name").split()
    assert len(pods) == 3
    for pod in pods:
        users = shell(f"kubectl exec {pod} -- sh -c 'stat -c %u /proc/[0-9]*' 2>/dev/null")
        assert set(users.split()) == {"1000"}, pod
    for pod in pods:
        shell(f"kubectl exec {pod} -- touch /tmp/looked")
    assert shell.ended(NAME) == "Succeeded", shell.report()


@pytest.mark.promise("E: cleanPodPolicy All removes the workers when the job ends")
@pytest.mark.promise("E: ttlSecondsAfterFinished removes the launcher when its time has come")
def test_nothing_is_left_but_the_record(shell: Shell, manifest: Callable[..., str]) -> None:
    text = manifest().replace("ttlSecondsAfterFinished: 60", "ttlSecondsAfterFinished: 10")
    shell("kubectl create -f - -n $NAMESPACE", given=text)
    assert shell.ended(NAME) == "Succeeded", shell.report()
    workers = "training.kubeflow.org/job-role=worker"
    shell.until("the workers' removal", lambda: not shell(f"kubectl get pods -l {POD},{workers} -o name"))
    shell.until("the removal of all pods and of the launcher's Job",
                lambda: not shell(f"kubectl get jobs,pods -l {POD} -o name"))
    assert shell.ended(NAME) == "Succeeded"


@pytest.mark.promise("E: mpiboot run -f runs the same manifest on Docker")
def test_the_same_manifest_runs_on_docker(
        mpiboot: Callable[..., subprocess.CompletedProcess[str]], manifest: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "mpijob.yaml"
    path.write_text(manifest().replace(f"name: {NAME}", f"name: {tmp_path.name.replace('_', '-')[:40].lower()}"))
    done = mpiboot("run", "--engine", "docker", "-f", str(path))
    assert done.returncode == 0, done.stderr
    found = hosts(done.stdout)
    assert sorted(found.values()) == [1, 1]
    assert all("worker" in host for host in found)


def follow(shell: Shell, *, wait: bool = True) -> str:
    """What the launcher prints: to its end, or so far."""
    launcher = f"-l {POD},training.kubeflow.org/job-role=launcher"
    if not wait:
        return shell(f"kubectl logs {launcher} 2>/dev/null || true")
    started = f"kubectl get pods {launcher} -o jsonpath='{{.items[*].status.containerStatuses[0].state}}'"
    shell.until("the launcher's start", lambda: "running" in (said := shell(started)) or "terminated" in said)
    return shell(f"kubectl logs -f {launcher} --tail=-1")
