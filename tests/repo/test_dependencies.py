"""What mpiboot imports is what its package asks for; and the oldest versions that it asks for are enough."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.cli.main import DISTRIBUTIONS
from tests.repo.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PACKAGES = sorted(link for link in (REPOSITORY / "src" / "mpiboot").iterdir() if link.is_symlink())
# Import name -> package, where the command line has nothing to say about them.
NAMES = {**DISTRIBUTIONS, "click": "click", "boto3": "boto3", "botocore": "botocore", "mpi4py": "mpi4py"}
TOOLS = ("pytest", "pytest-timeout", "pytest-xdist")
# Fast ones that use the libraries: paramiko, cryptography, PyYAML, aiohttp, docker, click.
TESTS = ("tests/ssh", "tests/job/test_manifest.py", "tests/controller/test_watching.py",
         "tests/engines/test_podspec.py", "tests/images/test_docker_command.py", "tests/repo/test_cli.py")  # fmt: skip
IMPORT_ALL = """
import importlib, mpiboot, pkgutil
for module in pkgutil.walk_packages(mpiboot.__path__, "mpiboot."):
    if ".kit" not in module.name and "__main__" not in module.name:
        importlib.import_module(module.name)
"""


def project() -> dict[str, Any]:
    described: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    return described


def name_of(requirement: str) -> str:
    return re.split(r"[>=<;\[ ]", requirement)[0]


def declared() -> set[str]:
    """All packages that an installation can ask for, by default or by an extra."""
    extras = project()["optional-dependencies"].values()
    return {name_of(one) for one in [*project()["dependencies"], *(one for extra in extras for one in extra)]}


def imported(path: Path) -> Iterator[str]:
    """The packages that a file imports when it runs, without Python's own and ours."""
    tree = ast.parse(path.read_text())
    for_types = {
        id(inner) for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }  # fmt: skip
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        # A library without which the start is quicker: importlib.import_module("paramiko").
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "importlib.import_module":
            names = [str(one.value) for one in node.args if isinstance(one, ast.Constant)]
        yield from {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"mpiboot"}


def product() -> dict[str, set[str]]:
    """Each package that mpiboot imports, with the files that import it."""
    files = [*(REPOSITORY / "src" / "mpiboot").glob("*.py")]
    for package in PACKAGES:
        files += [path for path in package.resolve().rglob("*.py") if "kit" not in path.parts]
    found: dict[str, set[str]] = {}
    for path in files:
        for name in imported(path):
            found.setdefault(name, set()).add(str(path.relative_to(REPOSITORY)))
    return found


def test_every_import_is_declared() -> None:
    used = product()
    assert len(used) > 9, "too few: the files were not found"
    missing = {name: files for name, files in used.items() if NAMES.get(name) not in declared()}
    assert missing == {}


def test_every_dependency_is_imported() -> None:
    used = {NAMES.get(name) for name in product()}
    assert {name_of(one) for one in project()["dependencies"]} - used == set()


def test_every_dependency_has_a_minimum() -> None:
    assert [one for one in project()["dependencies"] if not re.fullmatch(r"[\w-]+>=[\d.]+", one)] == []


def test_a_missing_package_is_one_line_for_each_that_a_plain_installation_has() -> None:
    assert {*DISTRIBUTIONS.values(), "click"} == {name_of(one) for one in project()["dependencies"]}


def test_without_pyyaml_the_user_learns_what_to_install(
    monkeypatch: pytest.MonkeyPatch, typed: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    manifest = tmp_path / "job.yaml"
    manifest.write_text("kind: MPIJob\n")
    monkeypatch.setitem(sys.modules, "yaml", None)
    done = typed("lint", "-f", str(manifest))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "mpiboot: the Python package PyYAML is missing; install it with: pip install PyYAML\n"


@pytest.mark.timeout(600)
@pytest.mark.skipif(
    os.environ.get("CI") != "true" and "MPIBOOT_TEST_FRESH" not in os.environ,
    reason="downloads old versions; get it with: MPIBOOT_TEST_FRESH=1 make test ARGS=tests/repo",
)
def test_the_oldest_versions_are_enough(
    environment: Callable[..., Path], wheel: Path, tmp_path: Path
) -> None:
    oldest = [requirement.replace(">=", "==") for requirement in project()["dependencies"]]
    programs = environment(str(wheel), *oldest, *TOOLS)
    imports = subprocess.run([programs / "python", "-I", "-c", IMPORT_ALL], capture_output=True, text=True)
    assert imports.returncode == 0, imports.stderr
    # kubernetes_asyncio before 33.3 fails here: it has no setting for strict verification, or auth_settings is another.
    config = tmp_path / "config"
    config.write_text(KUBECONFIG)
    status = subprocess.run([programs / "mpiboot", "status", "job"], env={**os.environ, "KUBECONFIG": str(config)},
                            capture_output=True, text=True)  # fmt: skip
    assert (status.returncode, "Traceback" in status.stderr) == (2, False), status.stderr
    assert "127.0.0.1:1" in status.stderr
    tests = subprocess.run([programs / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS],
                           cwd=REPOSITORY, capture_output=True, text=True)  # fmt: skip
    assert tests.returncode == 0, tests.stdout[-5000:]


KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: one
contexts: [{name: one, context: {cluster: one, user: one}}]
clusters: [{name: one, cluster: {server: "https://127.0.0.1:1", insecure-skip-tls-verify: true}}]
users: [{name: one, user: {token: abc}}]
"""
