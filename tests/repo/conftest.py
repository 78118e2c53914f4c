"""The project as a user installs it: a wheel, and environments of Python that hold it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

REPOSITORY = Path(__file__).resolve().parents[2]


def tracked(*folders: str) -> list[str]:
    """The files that git tracks, all or those below the folders."""
    listed = subprocess.run(["git", "ls-files", *folders], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if os.path.lexists(REPOSITORY / name)]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that the tracked files give, built from a copy: leftovers of an earlier build would get into it."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in tracked():
        copy = source / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / name, copy, follow_symlinks=False)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(target), str(source)]
    done = subprocess.run(pip, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return next(target.glob("*.whl"))


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes an environment of Python that holds these requirements; gives the directory of its programs."""

    def make(*requirements: str) -> Path:
        home = tmp_path_factory.mktemp("environment")
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True, capture_output=True)
        pip = [str(home / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
        done = subprocess.run([*pip, *requirements], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return home / "bin"

    return make
