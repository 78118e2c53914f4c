"""`pip install .` and nothing else: every command works, or says in one line what it lacks."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import click
import pytest

from mpiboot.cli.main import root
from tests.repo.test_cli import TREE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

pytestmark = pytest.mark.timeout(600)

GROUPS = [path.split()[1:] for path, command in TREE if isinstance(command, click.Group)]
COMMANDS = [path.split()[1:] for path, command in TREE if not isinstance(command, click.Group)]
CLUSTER = ["--engine", "kubernetes"]
# What is wrong of each: a thing that is not there, an engine and a cluster that do not answer.
WRONG = [
    *[[*path, "--no-such-option"] for path in COMMANDS],
    *[[*path, "no-such-command"] for path in GROUPS],
    ["ps", "--engine", "docker"],
    ["run", "-n", "2", "--engine", "docker", "mpiboot/openmpi", "--", "true"],
    ["run", "-f", "nowhere.yaml"],
    ["run", "-f", "job.yaml"],
    ["run", "-n", "2", *CLUSTER, "mpiboot/openmpi", "--", "true"],
    ["logs", "nowhere"],
    ["logs", "nowhere", *CLUSTER],
    ["scale", "nowhere", "2"],
    ["scale", "nowhere", "2", *CLUSTER],
    ["delete", "nowhere"],
    ["delete", "nowhere", *CLUSTER],
    ["generate", "mpi-job-simple"],
    ["generate", "mpi-job-simple", "x", "--gpus", "two"],
    ["lint", "-f", "nowhere.yaml"],
    ["lint", "-f", "job.yaml"],
    ["convert", "-f", "job.yaml"],
    ["status", "nowhere"],
    ["operator"],
    ["operator", "--kubeconfig", "nowhere"],
    ["images", "build", "no-such-image"],
    ["images", "build", "openmpi"],
    ["images", "check", "mpiboot/openmpi"],
    ["images", "push", "--registry", "localhost:1"],
    ["images", "load", "--kind", "nowhere"],
    ["images", "sbom", "mpiboot/openmpi"],
    ["images", "fragment", "no-such-image"],
    ["images", "--matrix", "nowhere.toml", "list"],
    ["images", "bake", "--context", "job.yaml"],
    ["launch", "--init-timeout", "soon", "--", "true"],
    ["wait", "--port", "ssh"],
]
RIGHT = [
    *[[*path, "--help"] for path in (*COMMANDS, *GROUPS)],
    ["--version"],
    ["ps"],
    ["images", "list"],
    ["images", "bake"],
    ["images", "fragment", "openmpi"],
    ["generate", "mpi-job-simple", "x"],
]


@pytest.fixture(scope="module")
def installed(
    environment: Callable[..., Path], wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Sequence[str]], subprocess.CompletedProcess[str]]:
    """Runs `mpiboot` of a plain installation, in a folder with a broken job.yaml, without an engine and a cluster."""
    program = environment(str(wheel)) / "mpiboot"
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "job.yaml").write_text("apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nspec: 3\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MPIBOOT", "KUBE"))}
    nothing = {"DOCKER_HOST": "unix:///nowhere/docker.sock", "KUBECONFIG": "/nowhere/config", "HOME": str(folder)}

    def run(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, *words], cwd=folder, env=kept | nothing, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=120)  # fmt: skip

    return run


def ended_otherwise(
    installed: Callable[[Sequence[str]], subprocess.CompletedProcess[str]], commands: list[list[str]], codes: set[int]
) -> dict[str, tuple[int, str]]:
    """The commands that did not end with one of these codes, or ended in a stack trace."""
    with ThreadPoolExecutor(2) as pool:
        done = dict(zip([" ".join(words) for words in commands], pool.map(installed, commands), strict=True))
    return {
        words: (result.returncode, result.stderr)
        for words, result in done.items()
        if result.returncode not in codes or "Traceback" in result.stderr
    }


def test_every_command_has_its_help_and_those_that_need_nothing_work(
    installed: Callable[[Sequence[str]], subprocess.CompletedProcess[str]],
) -> None:
    assert list(root.commands) == []  # the table, not click, lists them: TREE has walked it
    assert ended_otherwise(installed, RIGHT, {0}) == {}


def test_no_wrong_input_is_a_stack_trace(
    installed: Callable[[Sequence[str]], subprocess.CompletedProcess[str]],
) -> None:
    assert ended_otherwise(installed, WRONG, {1, 2}) == {}


def test_the_list_of_images_says_why_the_engine_is_not_asked(
    installed: Callable[[Sequence[str]], subprocess.CompletedProcess[str]],
) -> None:
    done = installed(["images", "list"])
    assert "no engine" in done.stdout
    assert done.stderr.startswith("mpiboot: no Docker engine answers at unix:///nowhere/docker.sock")


def test_an_installation_without_a_clone_sends_the_same_files_to_a_build(
    installed: Callable[[Sequence[str]], subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    from mpiboot.images.build.context import assemble

    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    assemble(ours)
    assert installed(["images", "bake", "--context", str(theirs)]).returncode == 0
    below = [sorted(str(path.relative_to(top)) for path in top.rglob("*")) for top in (ours, theirs)]
    assert below[0] == below[1]
