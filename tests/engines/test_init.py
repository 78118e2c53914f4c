"""`mpiboot init`: a first manifest that runs as it is, and a Dockerfile."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from mpiboot.containers.client import docker_cli
from mpiboot.job.check.lint import lint
from mpiboot.job.read import manifest, read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Mpiboot = Callable[..., subprocess.CompletedProcess[str]]


def test_what_it_writes_runs_as_it_is(image: Callable[[str], str], mpiboot: Mpiboot, tmp_path: Path) -> None:
    made = mpiboot("init", "-o", str(tmp_path), "--image", image("openmpi"))
    assert (made.returncode, made.stdout) == (0, f"{tmp_path}/job.yaml\n"), made.stderr
    assert f"now: mpiboot run -f {tmp_path}/job.yaml" in made.stderr
    done = mpiboot("run", "-f", str(tmp_path / "job.yaml"))
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    hosts = sorted(line.split()[-1] for line in done.stdout.splitlines() if line.startswith("rank "))
    assert hosts == ["pi-worker-0", "pi-worker-0", "pi-worker-1", "pi-worker-1"]


def test_the_dockerfile_puts_a_program_into_an_image(
    image: Callable[[str], str], mpiboot: Mpiboot, tmp_path: Path
) -> None:
    (tmp_path / "hello.py").write_text("from mpi4py import MPI\nprint(MPI.COMM_WORLD.size)\n")
    asked = ("init", "-o", str(tmp_path), "--image", image("openmpi"), "--dockerfile", "--name", "init-test")
    made = mpiboot(*asked, "--workers", "3", "--slots", "1", "--", "python3", "hello.py")
    assert made.returncode == 0, made.stderr
    build = [docker_cli(), "build", "--quiet", "--tag", "init-test:1", str(tmp_path)]
    subprocess.run(build, capture_output=True, check=True)
    try:
        assert mpiboot("lint", "-f", str(tmp_path / "job.yaml")).stdout == ""
        done = mpiboot("run", "-f", str(tmp_path / "job.yaml"))
        assert (done.returncode, done.stdout) == (0, "3\n3\n3\n"), done.stderr
    finally:
        subprocess.run([docker_cli(), "rmi", "--force", "init-test:1"], capture_output=True, check=True)


@pytest.mark.parametrize(("image_name", "runtime"), [("mpiboot/mpich:5", "MPICH"), ("r/me/mpiboot-intel", "Intel"),
                                                     ("mpiboot/openmpi", "OpenMPI")])  # fmt: skip
def test_the_runtime_is_that_of_the_image(typed: Mpiboot, image_name: str, runtime: str) -> None:
    text = typed("init", "-o", "-", "--image", image_name).stdout
    assert lint(text, "job.yaml") == ()
    assert read.read(manifest.load(text, "job.yaml")).job.runtime.name == runtime


def test_a_program_of_ones_own_names_the_job_and_must_be_in_the_image(typed: Mpiboot, tmp_path: Path) -> None:
    made = typed("init", "-o", str(tmp_path), "--", "python", "My_solver.py", "--steps", "1")
    job = yaml.safe_load((tmp_path / "job.yaml").read_text())
    assert job["metadata"]["name"] == "my-solver"
    launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    assert launcher["command"] == ["mpirun", "-n", "4", "python", "My_solver.py", "--steps", "1"]
    assert "the program must be in the image mpiboot/openmpi; --dockerfile writes" in made.stderr


def test_nothing_is_overwritten_and_wrong_names_write_nothing(typed: Mpiboot, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("mine")
    refused = typed("init", "-o", str(tmp_path), "--dockerfile")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
    assert f"{tmp_path}/Dockerfile is there already" in refused.stderr
    wrong = typed("init", "-o", str(tmp_path / "new"), "--name", "My_Job")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "metadata.name" in wrong.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["Dockerfile"]
