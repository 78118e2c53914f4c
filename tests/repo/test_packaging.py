"""The folders at the top are subpackages of mpiboot, and of nothing else; the wheel holds what a user needs."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.repo.conftest import REPOSITORY, tracked

if TYPE_CHECKING:
    from pathlib import Path

FOLDERS = sorted(link.name for link in (REPOSITORY / "src" / "mpiboot").iterdir() if link.is_symlink())


def test_the_source_folder_holds_links_and_what_makes_it_a_package() -> None:
    links = {f"src/mpiboot/{folder}" for folder in FOLDERS}
    own = {"__init__.py", "__main__.py", "py.typed"}
    assert set(tracked("src")) - links == {f"src/mpiboot/{name}" for name in own}


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_imports_as_part_of_mpiboot_and_not_by_its_bare_name(folder: str, tmp_path: Path) -> None:
    right = f"import mpiboot.{folder}"
    good = subprocess.run([sys.executable, "-c", right], cwd=tmp_path, capture_output=True, text=True)
    assert good.returncode == 0, good.stderr
    bare = f"import {folder}; print({folder}.__file__)"
    done = subprocess.run([sys.executable, "-c", bare], cwd=tmp_path, capture_output=True, text=True)
    # Some other distribution may own the name; ours must not answer to it.
    assert str(REPOSITORY) not in done.stdout


def test_all_names_every_extra_that_installs_without_a_compiler() -> None:
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (everything,) = extras["all"]
    named = everything.removeprefix("mpiboot[").removesuffix("]").split(",")
    assert sorted([*named, "all", "horovod"]) == sorted(extras)


def test_the_wheel_holds_every_tracked_file_of_the_packages(wheel: Path) -> None:
    wanted = {f"mpiboot/{name}" for name in tracked(*FOLDERS)}
    assert wanted - set(zipfile.ZipFile(wheel).namelist()) == set()


def test_the_wheel_holds_nothing_outside_the_package(wheel: Path) -> None:
    assert {name.split("/")[0].split("-")[0] for name in zipfile.ZipFile(wheel).namelist()} == {"mpiboot"}


def test_the_wheel_brings_the_plugin_of_kubectl(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (entries,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        assert "kubectl-mpi = mpiboot.cli.kubectl:main" in archive.read(entries).decode()
