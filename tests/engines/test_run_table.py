"""The table of tests/run_table.py for jobs on a Docker engine, and as processes of this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

import pytest

from tests.conftest import missing
from tests.run_table import ROWS, Place, names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def docker(image: Callable[[str], str], nothing_left: Callable[[], None], name: str, tmp_path: Path) -> Iterator[Place]:
    yield Place("docker", ("--engine", "docker", "--name", name, image("openmpi")), cwd=tmp_path)
    nothing_left()


@pytest.fixture
def local(state: Path, no_traces: Callable[[], None], name: str) -> Iterator[Place]:
    if not which("mpirun", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}"):
        missing("mpirun", "make setup")
    yield Place("local", ("--engine", "local", "--name", name), cwd=state)
    no_traces()


@pytest.fixture(params=["docker", "local"])
def place(request: pytest.FixtureRequest) -> Place:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Place)
    return found


@pytest.mark.parametrize("row", ROWS, ids=names)
def test_as_with_mpirun(place: Place, row: Callable[[Place], None]) -> None:
    row(place)
