"""The page "Run your own program" works word for word."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

import pytest

from tests.conftest import REPOSITORY, missing

if TYPE_CHECKING:
    from collections.abc import Callable

SECTIONS = dict(
    re.findall(
        r"^## (.*?)\n(.*?)(?=^## |\Z)",
        (REPOSITORY / "docs" / "how-to" / "own-program.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
)


def blocks(section: str, language: str = "") -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", SECTIONS[section], re.MULTILINE | re.DOTALL)
    return [text for of, text in found if of == language]


def commands(section: str) -> list[str]:
    return [line for block in blocks(section) for line in block.splitlines() if line.startswith("mpiboot ")]


@pytest.fixture
def typed_line(tmp_path: Path) -> Callable[[str], str]:
    """Types a line of the page into a shell, in a directory that holds the page's programs; what it prints."""
    (tmp_path / "hello.py").write_text(blocks("A Python program", "python")[0])
    (tmp_path / "pi.c").write_text(blocks("A program to compile", "c")[0])
    # As in an activated environment.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    def run(line: str) -> str:
        done = subprocess.run(
            ["sh", "-c", line], cwd=tmp_path, env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=200,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    return run


def test_python_on_docker(typed_line: Callable[[str], str], image: Callable[[str], str]) -> None:
    assert image("openmpi")
    (line,) = commands("A Python program")
    printed = typed_line(line).splitlines()
    assert len(printed) == 4
    for found in (printed, blocks("A Python program")[-1].splitlines()):
        assert all(re.fullmatch(r"rank \d of 4 on hello-\w{4}-worker-[01]", one) for one in found), found


def test_c_on_docker(typed_line: Callable[[str], str], image: Callable[[str], str]) -> None:
    assert image("openmpi-dev")
    compiles, runs = commands("A program to compile")
    assert typed_line(compiles) == ""
    printed = typed_line(runs)
    assert f"It prints `{printed.strip()}`" in SECTIONS["A program to compile"]


@pytest.mark.usefixtures("state")
def test_both_as_processes(typed_line: Callable[[str], str], program: Callable[[str], str]) -> None:
    program("gcc")
    if not which("mpicc", path=str(Path(sys.executable).parent)):
        missing("an MPI in this Python's environment", "make setup")
    python, compiles, runs = commands("No containers")
    assert len(re.findall(r"rank \d of 4 on ", typed_line(python))) == 4
    typed_line(compiles)
    assert typed_line(runs) == "pi is 3.141593, from 4 ranks\n"
