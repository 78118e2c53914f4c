"""`mpiboot scale` on Docker, and containers that die under an elastic job."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests import elastic
from tests.bootstrap.processes import eventually
from tests.foreign.build import FOREIGN, build

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    import docker

    from tests.engines.conftest import Running

pytestmark = pytest.mark.usefixtures("nothing_left")


def job(path: Path, name: str, image: str, sizes: str, mount: str = "/home/mpiuser/.ssh") -> str:
    """The path of a manifest of an elastic job with two workers."""
    main = {"name": "main", "image": image}
    replicas = {
        "Launcher": {"template": {"spec": {"containers": [{**main, "command": elastic.command(sizes)}]}}},
        "Worker": {"replicas": 2, "template": {"spec": {"terminationGracePeriodSeconds": 1, "containers": [main]}}},
    }
    spec = {"sshAuthMountPath": mount, "runPolicy": {"backoffLimit": 0}, "mpiReplicaSpecs": replicas}
    text = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": name}, "spec": spec}
    (path / "job.yaml").write_text(json.dumps(text))
    return str(path / "job.yaml")


def hosts(name: str, count: int) -> str:
    return "".join(f"{name}-worker-{index}.{name}.default.svc " for index in range(count))


@pytest.mark.parametrize("kind", ["ours", "foreign"])
def test_a_job_grows_and_shrinks_without_a_restart(
    kind: str, start: Callable[..., Running], image: Callable[[str], str], name: str, tmp_path: Path,
    mpiboot: Callable[..., subprocess.CompletedProcess[str]], docker_engine: docker.DockerClient,
) -> None:  # fmt: skip
    ours = kind == "ours"
    tag = image("openmpi") if ours else build(docker_engine, FOREIGN / "peers")
    mount = "/home/mpiuser/.ssh" if ours else "/root/.ssh"
    running = start("run", "--engine", "docker", "-f", job(tmp_path, name, tag, " 2 3 1 2", mount))
    running.wait_for(f"hosts: {hosts(name, 2)}")
    for count, before in ((3, 2), (1, 3), (2, 1)):
        done = mpiboot("scale", name, str(count))
        assert (done.returncode, done.stdout) == (0, f"{name}: {before} -> {count} workers (docker)\n"), done.stderr
        running.wait_for(f"hosts: {hosts(name, count)}\n")
    assert running.end() == 0, running.err
    out, err = "".join(running.out), "".join(running.err)
    assert "no rank on" not in out
    ranks = [line for line in out.splitlines() if "rank on" in line]
    # The job may have begun with either of the two.
    assert sorted(ranks[:3]) == [f"rank on {name}-worker-{index}" for index in range(3)]
    if ours:
        assert "mpiboot: 2 -> 3 workers: + worker-2" in err


def test_a_container_that_is_killed_or_removed_is_replaced(
    start: Callable[..., Running], image: Callable[[str], str], name: str, tmp_path: Path,
    docker_engine: docker.DockerClient, mpiboot: Callable[..., subprocess.CompletedProcess[str]],
) -> None:  # fmt: skip
    running = start("run", "--engine", "docker", "-f", job(tmp_path, name, image("openmpi"), " 3"))
    running.wait_for(f"hosts: {hosts(name, 2)}\n")
    came, went = "mpiboot: 1 -> 2 workers: + worker-1\n", "mpiboot: 2 -> 1 workers: - worker-1\n"
    at_first = running.err.count(came)  # the job may have begun with one of them
    # The engine reports its end long before so many files are gone; until then it cannot be started, nor its name used.
    many = docker_engine.containers.get(f"{name}-worker-1")
    assert many.exec_run(["sh", "-c", "mkdir /tmp/many && cd /tmp/many && seq 10000 | xargs touch"]).exit_code == 0
    many.remove(force=True)
    eventually(lambda: running.err.count(came) == at_first + 1, "the removed one did not come back")
    docker_engine.containers.get(f"{name}-worker-1").kill()
    eventually(lambda: running.err.count(came) == at_first + 2, "the killed one did not come back")
    assert running.err.count(went) == 2
    assert mpiboot("scale", name, "3").returncode == 0
    assert running.end() == 0, running.err


@pytest.mark.parametrize(
    ("workers", "fault"),
    [
        ("4", "4 is too many: the job takes at most 3 (--max-np 3, 1 slot a worker)"),
        ("0", "0 is not in the range x>=1"),
        ("many", "'many' is not a valid integer range"),
    ],
)
def test_numbers_that_a_job_cannot_have(
    start: Callable[..., Running], image: Callable[[str], str], name: str, tmp_path: Path, workers: str, fault: str,
    mpiboot: Callable[..., subprocess.CompletedProcess[str]],
) -> None:  # fmt: skip
    running = start("run", "--engine", "docker", "-f", job(tmp_path, name, image("openmpi"), " 9"))
    running.wait_for(f"hosts: {hosts(name, 2)}")
    done = mpiboot("scale", name, workers)
    assert done.returncode == 2
    assert fault in done.stderr


def test_workers_without_horovod_end_the_job_before_it_starts(
    image: Callable[[str], str], name: str, tmp_path: Path, docker_engine: docker.DockerClient,
    mpiboot: Callable[..., subprocess.CompletedProcess[str]],
) -> None:  # fmt: skip
    path = job(tmp_path, name, image("openmpi"), " 2")
    given = json.loads((tmp_path / "job.yaml").read_text())
    with_it = build(docker_engine, elastic.PROGRAM.parent, base=image("openmpi"), tag="d-elastic")
    words = ["horovodrun", "--host-discovery-script", "/etc/mpi/discover_hosts.sh", "python", "train.py"]
    launcher = given["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    launcher.update(image=with_it, command=words)
    (tmp_path / "job.yaml").write_text(json.dumps(given))
    done = mpiboot("run", "--engine", "docker", "-f", path)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert f"{name}-worker-" in done.stderr
    assert "so its image lacks Horovod; give workers the launcher's image" in done.stderr


def test_a_job_of_fixed_size_cannot_be_scaled(
    start: Callable[..., Running], manifest: Callable[..., str], image: Callable[[str], str], name: str,
    mpiboot: Callable[..., subprocess.CompletedProcess[str]],
) -> None:  # fmt: skip
    running = start("run", "--engine", "docker", "-f", manifest("echo up; sleep 100", image("openmpi")))
    running.wait_for("up")
    done = mpiboot("scale", name, "2")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"mpiboot: {name} is not elastic, so it keeps the workers it began with" in done.stderr


@pytest.mark.parametrize(("fewest", "why"), [("3", "--min-np 3"), ("1", "-np 3")])
def test_too_few_workers_are_refused_before_anything_starts(
    mpiboot: Callable[..., subprocess.CompletedProcess[str]], nothing_left: Callable[[], None], fewest: str, why: str,
) -> None:  # fmt: skip
    words = ("horovodrun", "-np", "3", "--min-np", fewest, "--host-discovery-script", "/etc/mpi/discover_hosts.sh", "x")
    done = mpiboot("run", "--engine", "docker", "--workers", "2", "--slots", "1", "mpiboot/openmpi", "--", *words)
    assert done.returncode == 2
    assert done.stderr == f"mpiboot: {why} needs 3 workers, but the job has 2 workers with 1 slot each\n"
    nothing_left()
