"""`mpiboot run ... -- ./a.out` runs the a.out of the current directory, and what it writes belongs to the caller."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import missing

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., subprocess.CompletedProcess[str]]

DOCKER = ("run", "-q", "--engine", "docker", "-n", "2", "--workers", "2")
OF_A_RANK = """#!/bin/sh
echo "$(pwd) $(cat data)"
cat data > "result.$OMPI_COMM_WORLD_RANK"
"""
OTHER = 12345  # a user that no image knows


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with a program."""
    path = tmp_path / "work"
    path.mkdir()
    (path / "data").write_text("here\n")
    (path / "a.out").write_text(OF_A_RANK)
    (path / "a.out").chmod(0o755)
    return path


@pytest.fixture
def own(image: Callable[[str], str], nothing_left: object) -> str:
    assert nothing_left
    return image("openmpi")


def test_a_program_of_the_current_directory_runs_there_on_docker(
    mpiboot: Run, own: str, folder: Path, name: str
) -> None:
    done = mpiboot(*DOCKER, "--name", name, own, "--", "./a.out", cwd=folder)
    assert (done.returncode, done.stdout) == (0, f"{folder} here\n" * 2), done.stderr
    results = [folder / f"result.{rank}" for rank in range(2)]
    assert [(path.read_text(), path.stat().st_uid) for path in results] == [("here\n", os.getuid())] * 2


@pytest.mark.usefixtures("state")
def test_a_program_of_the_current_directory_runs_there_on_this_machine(mpiboot: Run, folder: Path) -> None:
    if not shutil.which("mpirun", path=str(Path(sys.executable).parent)):
        missing("mpirun", "make setup")
    done = mpiboot("run", "-q", "--engine", "local", "-n", "2", "--workers", "2", "--", "./a.out", cwd=folder)
    assert (done.returncode, done.stdout) == (0, f"{folder} here\n" * 2), done.stderr
    assert (folder / "result.1").read_text() == "here\n"


def test_files_of_an_ordinary_user_s_job_belong_to_that_user(own: str, folder: Path, name: str) -> None:
    socket = Path("/var/run/docker.sock")
    if os.getuid() or not socket.exists():
        missing("root and an engine at /var/run/docker.sock", "sudo make test")
    os.chown(folder, OTHER, OTHER)
    # A user who may use the engine, and may read where the tests are installed.
    user = ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", f"--groups={socket.stat().st_gid},4444",
            "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]  # fmt: skip
    command = [*user, sys.executable, "-m", "mpiboot", *DOCKER, "--name", name, own, "--"]
    script = "id -un; id -G; touch made.$OMPI_COMM_WORLD_RANK; test -w ~ && echo writes at home"
    done = subprocess.run([*command, "sh", "-c", script], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("mpiuser\n") == done.stdout.count("writes at home\n") == 2
    assert "4444" in done.stdout
    found = [(folder / f"made.{rank}").stat() for rank in range(2)]
    assert {(one.st_uid, one.st_gid) for one in found} == {(OTHER, OTHER)}


def test_without_a_workdir_the_program_starts_where_the_image_says(
    mpiboot: Run, own: str, folder: Path, name: str
) -> None:
    done = mpiboot(*DOCKER, "--no-workdir", "--name", name, own, "--", "sh", "-c", f"pwd; id -u; ls {folder}",
                   cwd=folder)  # fmt: skip
    assert done.stdout.splitlines() in (["/", "1000"] * 2, ["/", "/", "1000", "1000"])
    assert "No such file or directory" in done.stderr


def test_mounts_are_there_in_all_ranks_and_can_be_read_only(
    mpiboot: Run, own: str, folder: Path, name: str, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "in").write_text("from outside\n")
    script = "cat /data/in; touch /data/out 2>&1 | grep -o Read-only; touch /out/$OMPI_COMM_WORLD_RANK"
    done = mpiboot(*DOCKER, "--mount", "../data:/data:ro", "--mount", f"{folder}:/out", "--name", name, own, "--",
                   "sh", "-c", script, cwd=folder)  # fmt: skip
    assert sorted(done.stdout.splitlines()) == ["Read-only"] * 2 + ["from outside"] * 2, done.stderr
    assert {"0", "1"} <= {path.name for path in folder.iterdir()}


def test_a_manifest_sees_mounts_and_not_the_current_directory(
    mpiboot: Run, own: str, folder: Path, manifest: Callable[..., str]
) -> None:
    job = manifest(f"cat /here/data; ls {folder}", own)
    done = mpiboot("run", "-q", "--engine", "docker", "--mount", ".:/here", "-f", job, cwd=folder)
    assert done.stdout == "here\n", done.stderr
    assert "No such file or directory" in done.stderr


def test_a_directory_that_the_image_needs_has_another_path(mpiboot: Run, own: str, name: str) -> None:
    run = ("run", "--engine", "docker", "--name", name, own, "--", "sh", "-c", "pwd; ls -d /usr/lib/mpiboot")
    done = mpiboot(*run, cwd="/tmp")
    assert "the job sees /tmp as /workdir" in done.stderr
    assert done.stdout.splitlines() == ["/workdir", "/usr/lib/mpiboot"], done.stderr
    done = mpiboot(*run, cwd="/")
    assert "the job does not see the current directory, /: " in done.stderr
    assert done.returncode == 0, done.stderr


def test_a_mount_that_is_not_there_is_one_line(mpiboot: Run, own: str, name: str, tmp_path: Path) -> None:
    done = mpiboot(*DOCKER, "--name", name, "--mount", f"{tmp_path}/none:/data", own, "--", "true")
    assert done.returncode == 2
    assert f"the Docker engine finds no {tmp_path}/none on its machine" in done.stderr
    done = mpiboot("run", "--engine", "local", "--mount", f"{tmp_path}:/data", "--", "true")
    assert done.returncode == 2
    assert "needs containers" in done.stderr
