"""The number of files that a job passes from a user's command to its first process. A longer walk fails a test."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cluster import api
from walk.walks import launcher, operator

from tests.conftest import missing

if TYPE_CHECKING:
    from collections.abc import Callable

REPOSITORY = Path(__file__).resolve().parents[2]


def test_from_kubectl_apply_to_the_first_pod(tmp_path: Path) -> None:
    if absent := api.missing():
        missing(f"{', '.join(absent)} of a Kubernetes API server", ".venv/bin/python tools/cluster build api")
    files = operator(REPOSITORY, tmp_path)
    assert files.index("controller/reconcile.py") < files.index("job/read/read.py") < files.index("job/plan/plan.py")
    assert len(files) <= 43, files


def test_from_mpiboot_launch_to_mpirun(runtime: Callable[[str], Path], tmp_path: Path) -> None:
    runtime("openmpi")
    files = launcher(REPOSITORY, tmp_path)
    assert files.index("bootstrap/launcher.py") < files.index("bootstrap/run/command.py")
    assert len(files) <= 30, files
