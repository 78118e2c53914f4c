"""What a build sends to the engine: mpiboot's own files, whatever lies beside them."""

from __future__ import annotations

import shutil
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from mpiboot.images.build.context import EPOCH, assemble
from tests.repo.conftest import REPOSITORY, tracked

if TYPE_CHECKING:
    from pathlib import Path

LEFTOVERS = ("job/.ruff_cache/0.1/1234", "ssh/__pycache__/keys.cpython-311.pyc", "images/kit/lib/__pycache__/x.pyc",
             "examples/__pycache__/fashion.cpython-311.pyc", "images/kit/ssh/.install.sh.swp")  # fmt: skip
ASSEMBLE = "import sys, pathlib, mpiboot.images.build.context as c; c.assemble(pathlib.Path(sys.argv[1]))"


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The files of a context that this clone gives."""
    folder = tmp_path_factory.mktemp("context")
    assemble(folder)
    return files_below(folder)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The tracked files, and leftovers among them."""
    for name in tracked():
        target = tmp_path / "copy" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / name, target, follow_symlinks=False)
    for name in LEFTOVERS:
        target = tmp_path / "copy" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("left over")
    return tmp_path / "copy"


def assembled(copy: Path, folder: Path) -> set[str]:
    folder.mkdir()
    subprocess.run([sys.executable, "-B", "-c", ASSEMBLE, str(folder)], check=True, env={"PYTHONPATH": f"{copy}/src"})
    return files_below(folder)


def test_a_context_is_whole_and_the_same_each_time(tmp_path: Path) -> None:
    assemble(tmp_path)
    found = files_below(tmp_path)
    assert {"Dockerfile", "kit/lib/lib.sh", "nss/mpi_nss.c", "kit/examples/torch/torch/mnist.py"} <= found
    assert {"package/mpiboot/__main__.py", "package/mpiboot/ssh/shim.sh"} <= found
    for path in tmp_path.rglob("*"):
        assert path.stat().st_mtime == EPOCH
        assert stat.S_IMODE(path.stat().st_mode) == (0o755 if path.is_dir() else 0o644)
        assert not path.is_symlink()


def test_a_context_holds_what_git_lists_and_no_leftovers(copy: Path, tmp_path: Path, own: set[str]) -> None:
    subprocess.run(["git", "init", "--quiet", str(copy)], check=True)
    subprocess.run(["git", "add", "job", "ssh/keys.py"], cwd=copy, check=True, capture_output=True)
    (copy / "ssh" / "keys.py.orig").write_text("left over")
    (copy / ".git" / "info" / "exclude").write_text("*.orig\n*.swp\n")
    assert assembled(copy, tmp_path / "context") == own


def test_a_context_from_a_copy_without_git_holds_no_leftovers(copy: Path, tmp_path: Path, own: set[str]) -> None:
    assert assembled(copy, tmp_path / "context") == own
