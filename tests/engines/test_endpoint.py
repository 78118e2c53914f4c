"""Which container engine is used: DOCKER_HOST, Docker contexts, and the socket of rootless Docker."""

from __future__ import annotations

import os
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

from mpiboot.containers import endpoint as module
from mpiboot.containers.client import docker_cli
from mpiboot.containers.endpoint import NoEngineError, endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import docker

    Mpiboot = Callable[..., subprocess.CompletedProcess[str]]

REAL = os.environ.get("DOCKER_HOST", f"unix://{module.SOCKET}")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory, and a machine without Docker's own socket."""
    monkeypatch.setattr(module, "SOCKET", str(tmp_path / "docker.sock"))
    return tmp_path


@pytest.fixture
def context(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Makes a context by the docker command line; gives the environment of a user who has it."""

    def make(name: str, host: str) -> dict[str, str]:
        environment = {"PATH": os.environ["PATH"], "DOCKER_CONFIG": str(tmp_path / "config"), "HOME": str(tmp_path)}
        argv = [docker_cli(), "context", "create", name, "--docker", f"host={host}"]
        subprocess.run(argv, env=environment, capture_output=True, check=True)
        return environment

    return make


def use(name: str, environment: dict[str, str]) -> None:
    subprocess.run([docker_cli(), "context", "use", name], env=environment, capture_output=True, check=True)


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Makes sockets that exist; no engine is behind them."""
    made: list[socket.socket] = []

    def make(name: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        made.append(socket.socket(socket.AF_UNIX))
        made[-1].bind(str(path))
        return path

    yield make
    for one in made:
        one.close()


def test_without_any_choice_it_is_dockers_own_socket(home: Path) -> None:
    found = endpoint({"HOME": str(home)})
    assert (found.url, found.found) == (f"unix://{home}/docker.sock", False)


def test_docker_host_is_stronger_than_a_context(context: Callable[..., dict[str, str]]) -> None:
    environment = context("far", "tcp://far.example:2375")
    assert endpoint({**environment, "DOCKER_CONTEXT": "far"}).url == "tcp://far.example:2375"
    assert endpoint({**environment, "DOCKER_CONTEXT": "far", "DOCKER_HOST": "unix:///x"}).url == "unix:///x"


def test_the_context_that_docker_context_use_chose(home: Path, context: Callable[..., dict[str, str]]) -> None:
    environment = context("near", "unix:///run/near.sock")
    assert endpoint(environment).url == f"unix://{home}/docker.sock"
    use("near", environment)
    found = endpoint(environment)
    assert found.url == "unix:///run/near.sock"
    assert "the Docker context near" in str(found)
    assert endpoint({**environment, "DOCKER_CONTEXT": "default"}).url == f"unix://{home}/docker.sock"


@pytest.mark.parametrize("broken", ["{", "[]", '{"currentContext": null}'])
def test_a_broken_configuration_of_docker_chooses_no_context(home: Path, broken: str) -> None:
    (home / ".docker").mkdir()
    (home / ".docker" / "config.json").write_text(broken)
    assert endpoint({"HOME": str(home)}).url == f"unix://{home}/docker.sock"


def test_a_context_without_an_engine_is_one_line(home: Path, context: Callable[..., dict[str, str]]) -> None:
    environment = context("near", "unix:///run/near.sock")
    meta = next((home / "config" / "contexts" / "meta").glob("*/meta.json"))
    for text in ("{", "[]", '{"Endpoints": {}}'):
        meta.write_text(text)
        with pytest.raises(NoEngineError, match="DOCKER_CONTEXT=near: cannot read where its engine is in"):
            endpoint({**environment, "DOCKER_CONTEXT": "near"})


def test_a_contexts_certificates_are_used(home: Path, context: Callable[..., dict[str, str]]) -> None:
    environment = context("far", "tcp://far.example:2376")
    meta = next((home / "config" / "contexts" / "meta").glob("*"))
    tls = home / "config" / "contexts" / "tls" / meta.name / "docker"
    tls.mkdir(parents=True)
    found = endpoint({**environment, "DOCKER_CONTEXT": "far"})
    assert (found.tls, found.verify) == (tls, True)


def test_the_socket_of_rootless_docker_is_found(home: Path, listener: Callable[[str], Path]) -> None:
    environment = {"HOME": str(home), "XDG_RUNTIME_DIR": str(home / "run")}
    listener("run/podman/podman.sock")
    assert endpoint(environment).url == f"unix://{home}/docker.sock"
    for name, found in (("run/docker.sock", True), ("docker.sock", False)):
        path = listener(name)
        assert (endpoint(environment).url, endpoint(environment).found) == (f"unix://{path}", found)


def test_commands_use_the_engine_of_the_chosen_context(
    mpiboot: Mpiboot, docker_engine: docker.DockerClient, context: Callable[..., dict[str, str]]
) -> None:
    assert docker_engine.ping()
    environment = context("here", REAL)
    answered = mpiboot("ps", "--engine", "docker", env={**environment, "DOCKER_CONTEXT": "here"})
    assert answered.returncode == 0, answered.stderr
    context("gone", "unix:///nowhere/docker.sock")
    use("gone", environment)
    refused = mpiboot("ps", "--engine", "docker", env=environment)
    assert refused.returncode == 2
    where = environment["DOCKER_CONFIG"]
    source = f"(the Docker context gone, which {where}/config.json chooses)"
    assert f"no Docker engine answers at unix:///nowhere/docker.sock {source}" in refused.stderr


def test_a_context_that_does_not_exist_is_one_line(mpiboot: Mpiboot, tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "DOCKER_CONTEXT": "nosuch"}
    done = mpiboot("run", "--engine", "docker", "some/image", "--", "true", env=environment)
    assert done.returncode == 2
    assert done.stderr.startswith("mpiboot: DOCKER_CONTEXT=nosuch: there is no such context; `docker context ls` lists")
    assert len(done.stderr.splitlines()) == 1
