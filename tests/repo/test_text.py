"""What the repository says is true: links lead somewhere, and nothing names a machine it was written on."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.order import LONGEST, ONE_SERVER, TESTS, TRAINING

REPOSITORY = Path(__file__).resolve().parents[2]
TRACKED = [
    REPOSITORY / name
    for name in subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True).stdout.splitlines()
]
PAGES = [path for path in TRACKED if path.suffix == ".md"]
# A machine's own places, and hosts of package registries. Spelt so that this file does not find itself.
REGISTRIES = [name + r"\." for name in ("pypi", "pythonhosted", "golang", "deb" + r"\.debian", "registry")]
FOREIGN = re.compile(rf"({'|'.join(REGISTRIES)})(org|npm)|/work/" + "(main|shared)|/root/" + r"\.pyenv")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_relative_links_lead_to_files(page: Path) -> None:
    text = page.read_text()
    targets = re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", text)
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_no_file_names_a_registry_host_or_a_place_on_a_machine() -> None:
    found = []
    for path in TRACKED:
        if path.is_file() and not path.is_symlink():
            text = path.read_bytes().decode(errors="replace")
            found += [f"{path.relative_to(REPOSITORY)}: {match.group()}" for match in FOREIGN.finditer(text)]
    assert found == []


def test_the_order_of_imports_that_is_written_down_is_the_one_that_is_kept() -> None:
    page = (REPOSITORY / "docs" / "architecture.md").read_text()
    written = re.search(r"^`(cli -> .*)`, kept by import-linter", page, re.MULTILINE)
    assert written is not None
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    assert written[1] == " -> ".join(contract["layers"]).replace("mpiboot.", "")


def test_what_can_be_had_is_asked_for_where_ci_fails_without_it() -> None:
    # A skip that names a way to get the thing belongs to `missing`; these two have it.
    asking = {REPOSITORY / "tests" / "conftest.py", REPOSITORY / "tools" / "cluster" / "fixtures.py"}
    direct = re.compile(r"pytest\.skip\([^)]*get " + "it with")
    files = [path for path in TRACKED if path.suffix == ".py" and path.is_file() and path not in asking]
    assert [str(path) for path in files if direct.search(path.read_text())] == []


def test_no_binary_is_committed() -> None:
    files = [path for path in TRACKED if path.is_file() and not path.is_symlink()]
    assert [str(path) for path in files if b"\0" in path.read_bytes()] == []


def test_files_that_are_begun_first_or_kept_together_are_there() -> None:
    named = [*(TESTS / name for name in LONGEST), *(REPOSITORY / name for name in (*ONE_SERVER, TRAINING))]
    assert [str(path) for path in named if not path.exists()] == []
