"""Images on their way to where jobs run: a registry, a containerd."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mpiboot as package
from tests.conftest import missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import docker

    Mpiboot = Callable[..., subprocess.CompletedProcess[str]]
    Tag = Callable[[str], str]

_spec = importlib.util.spec_from_file_location("registry", Path(__file__).with_name("registry.py"))
assert _spec is not None
assert _spec.loader is not None
_registry = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_registry)

ROOT = Path(__file__).resolve().parents[2]
SOCKETS = ("/run/containerd/containerd.sock", "/var/run/docker/containerd/containerd.sock")
CONTAINERD = next((Path(path) for path in SOCKETS if os.access(path, os.W_OK)), Path(SOCKETS[0]))


def test_push_brings_version_and_latest_and_leaves_no_tag(
    image: Tag, mpiboot: Mpiboot, docker_engine: docker.DockerClient
) -> None:
    image("kit")
    with _registry.registry() as there:
        done = mpiboot("images", "push", "kit", "--registry", f"{there.address}/team")
        assert done.returncode == 0, done.stderr
        version = package.__version__
        assert set(there.manifests) == {f"team/mpiboot-kit/{version}", "team/mpiboot-kit/latest"}
        assert done.stdout.split() == [f"{there.address}/team/mpiboot-kit:{tag}" for tag in (version, "latest")]
        layers = there.manifests["team/mpiboot-kit/latest"]["layers"]
        assert layers
        assert all(layer["digest"] in there.blobs for layer in layers)
        tags = [tag for one in docker_engine.images.list() for tag in one.tags]
        assert not [tag for tag in tags if there.address in tag]


def test_push_of_what_is_not_built_says_how_to_build_it(
    mpiboot: Mpiboot, docker_engine: docker.DockerClient, tmp_path: Path
) -> None:
    assert docker_engine.ping()
    table = tmp_path / "mine.toml"
    table.write_text('[images]\nnever-built = { runtime = "openmpi", accel = "cpu", kind = "runtime" }\n')
    done = mpiboot("images", "--matrix", str(table), "push", "never-built", "--registry", "r")
    assert done.returncode == 2
    assert done.stderr.strip() == "mpiboot: never-built is not built; build it with: mpiboot images build never-built"


def test_push_for_an_accelerator_leaves_the_others_out(
    image: Tag, mpiboot: Mpiboot, tmp_path: Path
) -> None:
    image("kit")
    image("operator")
    rows = 'kit = { runtime = "none", accel = "none", kind = "carrier" }\n'
    rows += 'operator = { runtime = "none", accel = "cpu", kind = "operator" }\n'
    table = tmp_path / "mine.toml"
    table.write_text(f"[images]\n{rows}")
    with _registry.registry() as there:
        push = ["images", "--matrix", str(table), "push", "--registry", there.address]
        done = mpiboot(*push, "--accel", "none")
        assert done.returncode == 0, done.stderr
        assert {name.split("/")[1] for name in there.manifests} == {"kit"}
        assert mpiboot(*push, "kit", "--accel", "cpu").returncode == 2


def test_make_images_gives_each_command_only_options_that_it_has(mpiboot: Mpiboot, tmp_path: Path) -> None:
    # A command with wrong options would complain about those; these get as far as looking for an engine.
    words = ["ACCEL=cpu", "REGISTRY=r", "NAMES=openmpi"]
    said = subprocess.run(["make", "-n", "images", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    commands = [line.split("mpiboot ", 1)[1].split() for line in said.splitlines() if "mpiboot images" in line]
    assert [argv[1] for argv in commands] == ["build", "push"]
    for argv in commands:
        done = mpiboot(*argv, env={**os.environ, "DOCKER_HOST": f"unix://{tmp_path}/none.sock"})
        assert done.returncode == 2
        assert "no Docker engine answers" in done.stderr


@pytest.fixture
def ctr(program: Callable[[str], str]) -> Iterator[Callable[..., str]]:
    """containerd's own command, in a namespace of the test."""
    path = program("ctr")
    if not os.access(CONTAINERD, os.W_OK):
        missing(f"a containerd that answers at {CONTAINERD}", "sudo make engine")

    def run(*argv: str) -> str:
        command = [path, "--address", str(CONTAINERD), "--namespace", "mpiboot-test", *argv]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    yield run
    for name in run("images", "list", "--quiet").split():
        run("images", "remove", "--sync", name)
    for digest in run("content", "list", "--quiet").split():
        run("content", "remove", digest)
    subprocess.run([path, "--address", str(CONTAINERD), "namespaces", "remove", "mpiboot-test"], capture_output=True)


def test_load_brings_images_into_a_containerd(image: Tag, mpiboot: Mpiboot, ctr: Callable[..., str]) -> None:
    image("kit")
    done = mpiboot("images", "load", "kit", "--containerd", str(CONTAINERD), "--namespace", "mpiboot-test")
    assert done.returncode == 0, done.stderr
    assert "docker.io/mpiboot/kit:latest" in ctr("images", "list", "--quiet").split()


def test_load_into_a_containerd_that_is_not_there_is_one_line(
    image: Tag, mpiboot: Mpiboot, program: Callable[[str], str], tmp_path: Path
) -> None:
    program("ctr")
    image("kit")
    done = mpiboot("images", "load", "kit", "--containerd", str(tmp_path / "none.sock"))
    assert done.returncode == 2
    assert done.stderr.startswith("mpiboot: containerd did not import the images: ")
    assert len(done.stderr.strip().splitlines()) == 1


def test_an_installed_mpiboot_builds_the_same_as_a_clone(tmp_path: Path) -> None:
    # A wheel holds folders where a clone holds links; nothing else may make a difference.
    installed, here, there = tmp_path / "site", tmp_path / "here", tmp_path / "there"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(package.__file__).parent, installed / "mpiboot", ignore=ignore)
    program = "import sys, pathlib, mpiboot.images.build.context as c; c.assemble(pathlib.Path(sys.argv[1]))"
    for target, path in ((here, None), (there, str(installed))):
        target.mkdir()
        environment = {**os.environ, **({"PYTHONPATH": path} if path else {})}
        subprocess.run([sys.executable, "-P", "-c", program, str(target)], env=environment, check=True, cwd=tmp_path)
    listed = [sorted(str(one.relative_to(top)) for one in top.rglob("*")) for top in (here, there)]
    assert listed[0] == listed[1]
    files = [name for name in listed[0] if (here / name).is_file()]
    assert files
    assert all((here / name).read_bytes() == (there / name).read_bytes() for name in files)
