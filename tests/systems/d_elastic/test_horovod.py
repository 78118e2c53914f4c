"""Elastic training that is real: system D's manifest on the node, and workers that are taken away on Docker."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.bootstrap.processes import eventually
from tests.systems.d_elastic.test_plumbing import LAUNCHER, NAME, manifest, patched

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import docker

    from tests.engines.conftest import Running
    from tests.systems.shell import Shell

# Four sizes, and each time every rank imports its framework.
pytestmark = [pytest.mark.timeout(1200)]
LONG = 240.0  # seconds for ranks to import their framework on a busy machine
SIZE = re.compile(r"step \d+ loss \S+ size (\d+)")


def sizes(output: str) -> list[int]:
    """The number of ranks after each change of it."""
    found = [int(size) for size in SIZE.findall(output)]
    return [size for size, before in zip(found, [0, *found], strict=False) if size != before]


def has_in_order(found: list[int], wanted: list[int]) -> bool:
    rest = iter(found)
    return all(size in rest for size in wanted)


@pytest.mark.promise("D: a horovodrun job with the discovery script runs")
@pytest.mark.promise("D: raising Worker.replicas grows the running job without a restart")
@pytest.mark.promise("D: lowering Worker.replicas shrinks the running job without a restart")
def test_the_manifest_trains_and_follows_the_number_of_replicas(shell: Shell, loaded: Callable[[str], str]) -> None:
    shell("kubectl create -f -", given=manifest(loaded("horovod-tensorflow")))
    wanted = [2]
    shell.until("training with 2", lambda: sizes(shell(f"{LAUNCHER} 2>/dev/null || true")) == wanted, LONG)
    for count in (3, 1, 2):
        patched(shell, count)
        wanted.append(count)
        shell.until(f"training with {count}", lambda: has_in_order(sizes(shell(LAUNCHER)), wanted), LONG)
    assert shell.ended(NAME, limit=LONG) == "Succeeded"
    pod, = shell.json("kubectl get pods -o json -l mpi-job-role=launcher")["items"]
    assert [each["restartCount"] for each in pod["status"]["containerStatuses"]] == [0]


@pytest.fixture
def training(
    start: Callable[..., Running], image: Callable[[str], str], name: str, tmp_path: Path,
    nothing_left: Callable[[], None],
) -> Running:  # fmt: skip
    """A job of torch's on Docker that trains with three ranks."""
    nothing_left()
    return trains(start, tmp_path, name, image("horovod-torch"), workers=3, steps=300)


def trains(start: Callable[..., Running], folder: Path, name: str, tag: str, *, workers: int, steps: int) -> Running:
    words = ["horovodrun", "-np", str(workers), "--min-np", "1",
             "--host-discovery-script", "/etc/mpi/discover_hosts.sh",
             "python", "/examples/elastic/pytorch_mnist_elastic.py", "--steps", str(steps)]  # fmt: skip
    main = {"name": "main", "image": tag}
    job = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "metadata": {"name": name}, "spec": {
        "slotsPerWorker": 1, "runPolicy": {"backoffLimit": 0}, "mpiReplicaSpecs": {
            "Launcher": {"template": {"spec": {"containers": [{**main, "command": words}]}}},
            "Worker": {"replicas": workers, "template": {"spec": {
                "terminationGracePeriodSeconds": 1, "containers": [main]}}}}}}
    (folder / "job.json").write_text(json.dumps(job))
    running = start("run", "--engine", "docker", "-f", str(folder / "job.json"))
    reaches(running, [workers])
    return running


def reaches(running: Running, wanted: list[int]) -> None:
    """Wait until training went on with these numbers of ranks, one after the other."""
    def there() -> bool:
        return has_in_order(sizes("".join(running.out)), wanted) or ended(running)

    eventually(there, f"training never went on with {wanted[-1]} ranks", LONG)


def ended(running: Running) -> bool:
    if running.process.poll() is not None:
        pytest.fail(f"it ended:\n{''.join(running.out)}\n{''.join(running.err)}", pytrace=False)
    return False


def test_a_worker_that_is_killed_is_replaced_and_takes_part_again(
    training: Running, docker_engine: docker.DockerClient, name: str
) -> None:
    docker_engine.containers.get(f"{name}-worker-1").kill()
    reaches(training, [3, 2, 3])
    assert training.end(LONG) == 0, training.err
    assert "trained 300 steps, at the end with 3" in "".join(training.out)


def test_a_worker_that_is_cut_from_the_network_takes_part_again_when_it_is_back(
    training: Running, docker_engine: docker.DockerClient, name: str
) -> None:
    pid = str(docker_engine.containers.get(f"{name}-worker-1").attrs["State"]["Pid"])
    link = ["nsenter", "-t", pid, "-n", "ip", "link", "set", "eth0"]
    subprocess.run([*link, "down"], check=True)
    reaches(training, [3, 2])
    training.wait_for("3 -> 2 workers: - worker-1 (")
    subprocess.run([*link, "up"], check=True)
    reaches(training, [3, 2, 3])
    assert training.end(LONG) == 0, training.err


def test_training_goes_on_when_a_worker_is_cut_from_the_network_while_it_joins(
    start: Callable[..., Running], image: Callable[[str], str], name: str, tmp_path: Path,
    nothing_left: Callable[[], None], mpiboot: Callable[..., subprocess.CompletedProcess[str]],
    docker_engine: docker.DockerClient,
) -> None:  # fmt: skip
    nothing_left()
    running = trains(start, tmp_path, name, image("horovod-torch"), workers=2, steps=1_000_000)
    assert mpiboot("scale", name, "3").returncode == 0
    running.wait_for("2 -> 3 workers: + worker-2")
    pid = str(docker_engine.containers.get(f"{name}-worker-2").attrs["State"]["Pid"])
    subprocess.run(["nsenter", "-t", pid, "-n", "ip", "link", "set", "eth0", "down"], check=True)
    # With three only for the moment in which a rank on another worker stands in.
    reaches(running, [2, 3, 2])
    running.process.terminate()
    assert running.end(LONG) == 128 + signal.SIGTERM
