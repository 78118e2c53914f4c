"""`make check` refuses imports that break the order inside the packages."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
LINT = str(Path(sys.executable).with_name("lint-imports"))


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages and their contracts, in a folder where a test may break them."""
    folder = tmp_path_factory.mktemp("copy")
    packages = [link.name for link in (REPOSITORY / "src" / "mpiboot").iterdir() if link.is_symlink()]
    for package in packages:
        source = REPOSITORY / "src" / "mpiboot" / package
        shutil.copytree(source.resolve(), folder / "mpiboot" / package, ignore=shutil.ignore_patterns("kit", "*.pyc"))
    for module in (REPOSITORY / "src" / "mpiboot").glob("*.py"):
        shutil.copy(module, folder / "mpiboot")
    for file in ("pyproject.toml", "tools/checks/cycles.toml"):
        shutil.copy(REPOSITORY / file, folder)
    return folder


@pytest.mark.parametrize(
    ("module", "imported", "contract"),
    [
        ("job/model.py", "bootstrap.config", "imports point one way"),
        ("job/read/fields.py", "job.plan.plan", "job: read does not import plan or check"),
        ("bootstrap/process/reaper.py", "bootstrap.run.command", "bootstrap: process and data import no other part"),
        ("bootstrap/wait/prober.py", "bootstrap.run.command", "bootstrap: wait does not import run"),
        ("engines/docker/labels.py", "engines.local.state", "engines: docker, local and kubernetes are independent"),
        ("images/build/tag.py", "images.check.report", "images: build and check are independent"),
        ("controller/deadline.py", "kube.api", "controller: decisions do no input or output"),
        ("controller/reconcile.py", "controller.install.crd", "controller: the operator does not import"),
    ],
)
def test_an_import_against_the_order_is_refused(copy: Path, module: str, imported: str, contract: str) -> None:
    path = copy / "mpiboot" / module
    before = path.read_text()
    path.write_text(f"{before}\nimport mpiboot.{imported}\n")
    try:
        done = subprocess.run([LINT, "--no-cache"], cwd=copy, capture_output=True, text=True)
    finally:
        path.write_text(before)
    assert done.returncode == 1
    broken = [line for line in done.stdout.splitlines() if " BROKEN" in line]
    assert [line for line in broken if line.startswith(contract)], done.stdout[-3000:]


def test_two_modules_that_import_each_other_are_refused(copy: Path) -> None:
    paths = [copy / "mpiboot" / "kube" / name for name in ("clock.py", "conditions.py")]
    before = [path.read_text() for path in paths]
    for path, other in zip(paths, ("conditions", "clock"), strict=True):
        path.write_text(f"{path.read_text()}\nimport mpiboot.kube.{other}\n")
    try:
        command = [LINT, "--no-cache", "--config", "cycles.toml"]
        done = subprocess.run(command, cwd=copy, capture_output=True, text=True)
    finally:
        for path, text in zip(paths, before, strict=True):
            path.write_text(text)
    assert "No cycles are allowed in mpiboot.kube." in done.stdout, done.stdout
