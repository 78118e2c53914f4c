"""A program of the caller's own on a cluster, by the steps of docs/how-to/kubernetes.md; and what a kubelet adds."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cluster.fixtures import Cluster

    from tests.e2e.jobs import Jobs

    Run = Callable[..., subprocess.CompletedProcess[str]]

PATIENCE = 180
PAGE = REPOSITORY / "docs" / "how-to" / "kubernetes.md"
IMAGE = "registry.example/team/mpiboot-openmpi:5.0.7"


@pytest.fixture
def run(cluster: Cluster, jobs: Jobs, tmp_path: Path) -> Run:
    """`mpiboot ...` in a directory of its own, with a kubeconfig whose context `here` has the operator's namespace."""
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    context = config["contexts"][0]["context"]
    config["contexts"].append({"name": "here", "context": {**context, "namespace": jobs.namespace}})
    config["current-context"] = "here"
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    (tmp_path / "work").mkdir()

    def begin(*words: str, given: bytes | None = None) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", *words], cwd=tmp_path / "work", timeout=PATIENCE, check=False, capture_output=True,
            env={**os.environ, "KUBECONFIG": str(tmp_path / "kubeconfig")}, input=given or b"",
        )  # fmt: skip
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    return begin


def steps(image: str) -> tuple[list[str], str]:
    """The commands of the page's section about programs, with an image of this node; and its Python program."""
    section = PAGE.read_text().partition("## 4. ")[2].partition("\n## ")[0]
    blocks = re.findall(r"```(\w*)\n(.*?)```", section, re.DOTALL)
    commands = [line for kind, text in blocks if not kind for line in text.splitlines()]
    program = next(text for kind, text in blocks if kind == "python")
    return [command.replace(IMAGE, image) for command in commands], program


def on(output: str) -> list[str]:
    """RANK and WORKER of each rank."""
    return sorted(" ".join(found) for found in re.findall(r"rank (\d) of 4 on \S+-(worker-\d)", output))


def test_the_steps_of_the_page(
    run: Run, tmp_path: Path, loaded: Callable[[str], str], image: Callable[[str], str]
) -> None:
    image("openmpi-dev")
    commands, program = steps(loaded("openmpi"))
    shutil.copy(REPOSITORY / "examples" / "pi" / "pi.c", tmp_path / "work")
    (tmp_path / "work" / "hello.py").write_text(program)
    assert [command.split()[1] for command in commands] == ["cc", "run", "run"]
    for command in commands:
        done = run(*shlex.split(command))
        assert done.returncode == 0, done.stderr
        if " run " in command:
            assert on(done.stdout) == ["0 worker-0", "1 worker-0", "2 worker-1", "3 worker-1"], done.stdout
        if "./pi" in command:
            assert "pi is about 3.14159265" in done.stdout


def test_input_output_exit_code_and_results_of_a_program(
    run: Run, jobs: Jobs, tmp_path: Path, loaded: Callable[[str], str]
) -> None:
    (tmp_path / "work" / "program").write_text(
        "#!/bin/sh\n"
        "hostname > result.$OMPI_COMM_WORLD_RANK\n"
        # When a rank has ended, mpirun passes no more input to the others. Of more than 4,096 bytes it loses some.
        'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then exec sleep 600; fi\n'
        'wc -c; echo "to stderr" >&2; exit 7\n'
    )
    (tmp_path / "work" / "program").chmod(0o755)
    done = run(
        "mpiboot", "run", "--engine", "kubernetes", "-n", "2", "--workers", "2", "--name", "given", "--context", "here",
        "--fetch", "result.*", loaded("openmpi"), "--", "./program", given=b"x" * 4000,
    )  # fmt: skip
    assert done.returncode == 7, done.stderr
    assert done.stdout.split() == ["4000"]
    assert "to stderr" in done.stderr.splitlines()
    assert [(tmp_path / "work" / f"result.{rank}").read_text() for rank in (0, 1)] == [
        "given-worker-0\n", "given-worker-1\n"]  # fmt: skip
    assert jobs.pods("given", "launcher") == [] or jobs.pods("given", "launcher")[0]["metadata"]["deletionTimestamp"]


def test_an_image_without_mpiboot_is_named(run: Run, foreign: Callable[[str], str]) -> None:
    done = run("mpiboot", "run", "--engine", "kubernetes", foreign("guide"), "--", "hostname")
    assert done.returncode != 0
    assert "has no mpiboot in it, so it cannot take the current directory: use --no-workdir" in done.stderr


def test_a_name_that_no_registry_has_has_one_short_cause(run: Run) -> None:
    done = run("mpiboot", "run", "--engine", "kubernetes", "--name", "typo", "localhost:1/no/such:1", "--", "true")
    assert done.returncode == 2
    causes = [line for line in done.stderr.splitlines() if "cannot pull localhost:1/no/such:1: " in line]
    assert all("connection refused" in line for line in causes), done.stderr
    assert all(len(line) < 200 for line in done.stderr.splitlines())
    assert causes[-1].endswith("; mpiboot ends the job, as this did not change for 60 s")
    assert len(set(causes)) == len(causes) <= 4
