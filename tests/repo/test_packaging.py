"""The folders at the top are subpackages of mpiboot, and of nothing else; the wheel holds what a user needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDERS = sorted(link.name for link in (REPOSITORY / "src" / "mpiboot").iterdir() if link.is_symlink())


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_imports_as_part_of_mpiboot_and_not_by_its_bare_name(folder: str, tmp_path: Path) -> None:
    right = f"import mpiboot.{folder}"
    good = subprocess.run([sys.executable, "-c", right], cwd=tmp_path, capture_output=True, text=True)
    assert good.returncode == 0, good.stderr
    bare = f"import {folder}; print({folder}.__file__)"
    done = subprocess.run([sys.executable, "-c", bare], cwd=tmp_path, capture_output=True, text=True)
    # Some other distribution may own the name; ours must not answer to it.
    assert str(REPOSITORY) not in done.stdout


def tracked(*folders: str) -> list[str]:
    """The files that git tracks, all or those below the folders."""
    listed = subprocess.run(["git", "ls-files", *folders], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if os.path.lexists(REPOSITORY / name)]


def test_all_names_every_extra_that_installs_without_a_compiler() -> None:
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (everything,) = extras["all"]
    named = everything.removeprefix("mpiboot[").removesuffix("]").split(",")
    assert sorted([*named, "all", "horovod"]) == sorted(extras)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel that the tracked files give. Built from a copy: leftovers of an earlier build would get into it."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in tracked():
        copy = source / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / name, copy, follow_symlinks=False)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(target), str(source)]
    done = subprocess.run(pip, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return zipfile.ZipFile(next(target.glob("*.whl")))


def test_the_wheel_holds_every_tracked_file_of_the_packages(wheel: zipfile.ZipFile) -> None:
    wanted = {f"mpiboot/{name}" for name in tracked(*FOLDERS)}
    assert wanted - set(wheel.namelist()) == set()


def test_the_wheel_holds_nothing_outside_the_package(wheel: zipfile.ZipFile) -> None:
    assert {name.split("/")[0].split("-")[0] for name in wheel.namelist()} == {"mpiboot"}
