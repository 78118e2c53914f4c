"""Links lead to files, no file names a developer's machine, and lists that name files are right."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.order import API_TESTS, INSTALLING, TRAINING, recorded

REPOSITORY = Path(__file__).resolve().parents[2]
TRACKED = [
    REPOSITORY / name
    for name in subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True).stdout.splitlines()
]
PAGES = [path for path in TRACKED if path.suffix == ".md"]
# Folders of a developer's machine, and hosts of package registries; spelt so that this file does not match itself.
REGISTRIES = [name + r"\." for name in ("pypi", "pythonhosted", "golang", "deb" + r"\.debian", "registry")]
FOREIGN = re.compile(rf"({'|'.join(REGISTRIES)})(org|npm)|/work/" + "(main|shared)|/root/" + r"\.pyenv")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_relative_links_lead_to_files(page: Path) -> None:
    text = page.read_text()
    targets = re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", text)
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_no_file_names_a_registry_host_or_a_folder_of_a_machine() -> None:
    found = []
    for path in TRACKED:
        if path.is_file() and not path.is_symlink():
            text = path.read_bytes().decode(errors="replace")
            found += [f"{path.relative_to(REPOSITORY)}: {match.group()}" for match in FOREIGN.finditer(text)]
    assert found == []


def test_the_order_of_imports_in_the_docs_is_the_one_that_is_checked() -> None:
    page = (REPOSITORY / "docs" / "architecture.md").read_text()
    written = re.search(r"^(cli -> .*)$", page, re.MULTILINE)
    assert written is not None
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    contract, *_ = settings["tool"]["importlinter"]["contracts"]
    assert written[1] == " -> ".join(contract["layers"]).replace("mpiboot.", "")


def test_a_skip_that_names_a_remedy_goes_through_missing_which_fails_in_ci() -> None:
    # The two files that define `missing`.
    asking = {REPOSITORY / "tests" / "conftest.py", REPOSITORY / "tools" / "cluster" / "fixtures.py"}
    direct = re.compile(r"pytest\.skip\([^)]*get " + "it with")
    files = [path for path in TRACKED if path.suffix == ".py" and path.is_file() and path not in asking]
    assert [str(path) for path in files if direct.search(path.read_text())] == []


def test_no_binary_is_committed() -> None:
    files = [path for path in TRACKED if path.is_file() and not path.is_symlink()]
    assert [str(path) for path in files if b"\0" in path.read_bytes()] == []


def test_files_with_a_place_in_the_order_of_tests_exist() -> None:
    named = [REPOSITORY / name for name in (*recorded(), *API_TESTS, *INSTALLING, TRAINING)]
    assert [str(path) for path in named if not path.exists()] == []
