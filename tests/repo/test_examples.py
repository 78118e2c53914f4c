"""The examples run as their index writes them: every block of examples/README.md, on the engine of this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from mpiboot.job.check.lint import lint
from mpiboot.job.read import manifest, read
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES = REPOSITORY / "examples"
INDEX = (EXAMPLES / "README.md").read_text()
# tests/horovod runs these, in fewer steps: they train for minutes on a busy machine.
TRAININGS = ("horovod-tensorflow", "mpi-hvd.yaml", "manifests/elastic.yaml")
COMMANDS = re.sub(
    rf"^mpiboot run .*({'|'.join(TRAININGS)}).*\n", "",
    "".join(f"```\n{block}```\n" for block in re.findall(r"^```\n(.*?)^```$", INDEX, re.MULTILINE | re.DOTALL)),
    flags=re.MULTILINE,
)  # fmt: skip
BLOCKS = [block for block in re.findall(r"^```\n(.*?)^```$", COMMANDS, re.MULTILINE | re.DOTALL) if block]
MANIFESTS = sorted((EXAMPLES / "manifests").glob("*.yaml"))
IMAGE = re.compile(r"\bmpiboot/([a-z-]+)")


def images_of(block: str) -> set[str]:
    """The images that a block's commands use, with those of its manifests and those that compile."""
    found = set(IMAGE.findall(block))
    for name in re.findall(r"-f (\S+)", block):
        found |= set(IMAGE.findall((REPOSITORY / name).read_text()))
    if "mpiboot cc" in block:
        found |= {f"{name}-dev" for name in found}
    return found


@pytest.mark.timeout(900)
@pytest.mark.parametrize("block", BLOCKS, ids=lambda text: text.splitlines()[-1].split("mpiboot run ")[-1][-60:])
def test_blocks_of_the_index_run(block: str, image: Callable[[str], str], tmp_path: Path) -> None:
    for name in sorted(images_of(block)):
        image(name)
    # A copy: programs are compiled beside it, and the program's files belong to a user who may write there.
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-ec", block], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    lines = sorted(set(re.findall(r"^rank \d+ of 4 on \S*worker-(\d)$", done.stdout, re.MULTILINE)))
    if "-n 4" in block or "manifests/mp" in block:
        assert lines == ["0", "1"], done.stdout
    for word in re.findall(r"(?:pi is|the mean is|all heat is still there:|learnt the same:|loss) .*", done.stdout):
        assert "nan" not in word.lower()
        assert "False" not in word


def test_the_index_names_every_example() -> None:
    linked = {target.rstrip("/") for target in re.findall(r"\]\(([^)#\s]+)\)", INDEX)}
    files = [path.relative_to(EXAMPLES) for path in EXAMPLES.rglob("*") if path.is_file() and path.name != "README.md"]
    named = {path for path in files if {str(path), *map(str, path.parents)} & linked}
    assert [str(path) for path in files if path not in named and "__pycache__" not in path.parts] == []


def test_the_elastic_job_trains(
    image: Callable[[str], str], mpiboot: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    image("horovod-torch")
    job = yaml.safe_load((EXAMPLES / "manifests" / "elastic.yaml").read_text())
    launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    launcher["command"] += ["--steps", "2"]
    (tmp_path / "elastic.yaml").write_text(yaml.safe_dump(job))
    done = mpiboot("run", "-f", str(tmp_path / "elastic.yaml"), timeout=280)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_manifests_have_no_findings(path: Path) -> None:
    assert lint(path.read_text(), path.name) == ()
    assert read.read(manifest.load(path.read_text(), path.name)).job.name == path.stem


def test_the_gpu_job_runs_without_its_gpus(
    image: Callable[[str], str], mpiboot: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    image("openmpi-cuda")
    job = yaml.safe_load((EXAMPLES / "manifests" / "gpu.yaml").read_text())
    replicas = job["spec"]["mpiReplicaSpecs"]
    worker = replicas["Worker"]["template"]["spec"]["containers"][0]
    assert worker.pop("resources") == {"limits": {"nvidia.com/gpu": 1}}
    command = replicas["Launcher"]["template"]["spec"]["containers"][0]["command"]
    assert "resources" not in replicas["Launcher"]["template"]["spec"]["containers"][0]
    assert "nvidia-smi -L; " in command[-1]
    (tmp_path / "gpu.yaml").write_text(yaml.safe_dump(job))
    done = mpiboot("run", "-f", str(tmp_path / "gpu.yaml"))
    assert done.returncode == 0, done.stderr
    assert sorted(re.findall(r"on gpu-worker-(\d)", done.stdout)) == ["0", "1"]
