"""Test an MPI program on two workers: pytest examples/pytest

Needs `pip install pytest` beside mpiboot, and a container engine with the image mpiboot/openmpi.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mpiboot

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent


@pytest.fixture
def mpirun() -> Callable[..., mpiboot.Result]:
    """Runs a program of this folder as four ranks on two workers; a job that fails fails the test with its output."""

    def run(*command: str) -> mpiboot.Result:
        return mpiboot.run(command, "mpiboot/openmpi", n=4, workers=2, cwd=HERE, timeout=300)

    return run


def test_every_rank_gets_the_same_sum(mpirun: Callable[..., mpiboot.Result]) -> None:
    lines = mpirun("python3", "allreduce.py").stdout.split()
    assert lines == ["6"] * 4


def test_a_rank_that_fails_is_an_error_that_shows_why() -> None:
    with pytest.raises(mpiboot.JobError, match="no such file") as caught:
        mpiboot.run(["sh", "-c", "echo no such file >&2; exit 3"], "mpiboot/openmpi", n=2)
    assert caught.value.result.exit_code == 3
