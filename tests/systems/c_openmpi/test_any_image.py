"""The package with images that hold Open MPI and OpenSSH, and neither mpiboot nor Python: its pods as containers."""

from __future__ import annotations

import json
import shlex
import subprocess
import uuid
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from cluster.waiting import wait_for

from mpiboot.containers.client import docker_cli
from mpiboot.images.build.base import BaseError, native
from tests.conftest import missing
from tests.foreign.build import FOREIGN, build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import docker

    Typed = Callable[..., subprocess.CompletedProcess[str]]

PATIENCE = 120.0
HOSTFILE = "/kubeflow/openmpi/assets/hostfile"
OLDEST = "debian:bullseye-slim"  # that Debian's mirrors still have


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`make systems` tries the oldest Debian too, which takes minutes to make."""
    oldest = ["oldest, root"] if metafunc.config.getoption("--every-promise", default=False) else []
    if "plain" in metafunc.fixturenames:
        metafunc.parametrize("plain", ["current, user 1000", *oldest], indirect=True, scope="module")


@pytest.fixture(scope="module")
def plain(docker_engine: docker.DockerClient, request: pytest.FixtureRequest) -> str:
    """The tag of an image with Open MPI 4.1 and OpenSSH 8.4 as Debian has them, and of one with 5.0 and 10.0."""
    if request.param.startswith("current"):
        return build(docker_engine, FOREIGN / "guide")
    try:
        base = native(docker_engine, lambda _: None, OLDEST)
    except BaseError as error:
        missing(f"a Debian base ({error})", "make setup")
    return build(docker_engine, FOREIGN / "plain", base=base)


class Pods:
    """The pods that `mpiboot generate openmpi` prints, as containers on a network where their names resolve."""

    def __init__(self, folder: Path, manifests: list[dict[str, Any]]) -> None:
        self.run = f"mpiboot-test-{uuid.uuid4().hex[:6]}"
        self._folder = folder
        config, _, *self._pods = manifests
        for name, text in config["data"].items():
            (folder / "assets" / name).write_text(text)
        self.docker("network", "create", self.run)

    def docker(self, *arguments: str) -> str:
        done = subprocess.run([docker_cli(), *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def start(self, *roles: str) -> None:
        for pod in self._pods:
            if pod["metadata"]["labels"]["role"] in roles:
                self._start(pod)

    def _start(self, pod: dict[str, Any]) -> None:
        name, container = pod["metadata"]["name"], pod["spec"]["containers"][0]
        words = ["run", "--detach", "--name", f"{self.run}-{name}", "--hostname", name, "--network", self.run]
        words += ["--network-alias", f"{name}.hello.default"]
        for path in ("assets", "secrets"):
            words += ["--volume", f"{self._folder / path}:/kubeflow/openmpi/{path}:ro"]
        words += [word for entry in container["env"] for word in ("--env", f"{entry['name']}={entry['value']}")]
        first, *rest = (word.replace("$$", "$") for word in container["command"])  # as the kubelet does
        self.docker(*words, "--entrypoint", first, container["image"], *rest)

    def code(self, name: str) -> int:
        """The exit code of a container, once it has ended."""
        def ended() -> bool:
            return self.docker("inspect", "--format", "{{.State.Running}}", f"{self.run}-{name}").strip() == "false"

        try:
            wait_for(f"the end of {name}", ended, PATIENCE)
        except Exception as error:
            raise AssertionError(f"{error}\n{self.logs(name)}") from error
        return int(self.docker("inspect", "--format", "{{.State.ExitCode}}", f"{self.run}-{name}"))

    def logs(self, name: str) -> str:
        return self.docker("logs", f"{self.run}-{name}")

    def remove(self) -> None:
        names = [f"{self.run}-{pod['metadata']['name']}" for pod in self._pods]
        subprocess.run([docker_cli(), "rm", "--force", *names], capture_output=True)
        self.docker("network", "rm", self.run)


@pytest.fixture
def pods(typed: Typed, tmp_path: Path, plain: str) -> Iterator[Callable[..., Pods]]:
    """`pods(command, *more)`: the job of this command, with the user's own keys."""
    made: list[Pods] = []
    secrets = tmp_path / "secrets"
    for path in (secrets, tmp_path / "assets"):
        path.mkdir()
    subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-N", "", "-f", str(secrets / "id_rsa")], check=True)
    (secrets / "authorized_keys").write_text((secrets / "id_rsa.pub").read_text())
    (secrets / "id_rsa").chmod(0o444)

    def make(command: str, *more: str) -> Pods:
        words = ["generate", "openmpi", "hello", "--image", plain, "--secret", "keys", "--workers", "2"]
        done = typed(*words, "--exec", command, *more, "-o", "json")
        assert done.returncode == 0, done.stderr
        made.append(Pods(tmp_path, json.loads(done.stdout)["items"]))
        return made[-1]

    yield make
    for each in made:
        each.remove()


@pytest.mark.promise("C: generate openmpi works with any image that holds an MPI and OpenSSH")
@pytest.mark.promise("C: the launcher's exit code is the command's")
@pytest.mark.promise("C: when the launcher ends the workers end")
def test_ranks_run_on_the_workers_and_the_exit_code_is_the_commands(pods: Callable[..., Pods]) -> None:
    rank = "sh -c 'command -v python3 || echo no python; echo on $(hostname)'"
    job = pods(f"mpiexec -n 2 --hostfile {HOSTFILE} --allow-run-as-root {rank}; exit 7")
    job.start("master")
    job.start("worker")
    assert job.code("hello-master") == 7, job.logs("hello-master")
    printed = job.logs("hello-master")
    lines = Counter(line for line in printed.splitlines() if line.startswith(("on ", "no ")))
    assert lines == {"on hello-worker-0": 1, "on hello-worker-1": 1, "no python": 2}, printed
    assert "mpiboot: 2 of 2 workers ready after " in printed
    assert [job.code(f"hello-worker-{index}") for index in range(2)] == [0, 0]


@pytest.mark.promise("C: initTimeout: the launcher exits 124 when the workers are not there in time")
def test_workers_that_do_not_come_end_the_launcher_with_124(pods: Callable[..., Pods]) -> None:
    job = pods("mpiexec hostname", "--initTimeout", "3")
    job.start("master")
    assert job.code("hello-master") == 124
    assert "2 of 2 workers do not answer after 3 s: hello-worker-0, hello-worker-1" in job.logs("hello-master")


def test_data_needs_a_container_that_can_move_it(pods: Callable[..., Pods]) -> None:
    more = shlex.split("--downloadDataFrom s3://bucket/in --downloadDataTo /kubeflow/openmpi/data")
    job = pods("mpiexec hostname", *more)
    job.start("master")
    assert job.code("hello-master") == 74
    assert "this image cannot move data; generate with --dataImage" in job.logs("hello-master")
