"""Which tests go together to one of xdist's processes, and which of them are begun first.

A file that takes minutes and begins last keeps everybody waiting for one core.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    import pytest

TESTS = Path(__file__).parent
# Those that take 20 seconds or more, the longest first. A new one is not wrong without its place here, only later.
LONGEST = (
    "systems/d_elastic/test_horovod.py",
    "horovod/test_training.py",
    "controller/test_process.py",  # and all others that need an API server
    "e2e/test_jobs.py",
    "systems/c_openmpi/test_runs.py",
    "systems/a_v1alpha2/test_guide.py",
    "systems/b_mpi_job/test_runs.py",
    "image_contract/test_ours.py",
    "image_contract/test_foreign.py",
    "engines/test_docker_run.py",
    "systems/e_cerit/test_guide.py",
    "systems/e_cerit/test_traps.py",
    "systems/test_without_ssh.py",
    "systems/d_elastic/test_chart.py",
    "systems/d_elastic/test_plumbing.py",
    "e2e/test_trouble.py",
    "cluster/test_up_and_down.py",
    "bootstrap/test_waiting.py",
    "bootstrap/test_containers.py",
    "image_contract/test_ends.py",
    "horovod/test_contents.py",
    "images/test_contents.py",
    "images/test_build.py",
    "engines/test_elastic_docker.py",
    "engines/test_local_run.py",
    "engines/test_killed.py",
    "bootstrap/test_launch.py",
    "bootstrap/test_check_in.py",
    "job/test_properties.py",
)


# They share an API server and an operator, which cost more to start, and to keep, than most of these tests.
ONE_SERVER = ("tests/controller/", "tests/job/test_api_server.py", "tests/cluster/test_api_server.py")


# Training takes minutes with each framework, and nothing is shared between the two.
FRAMEWORKS, TRAINING = ("torch", "tensorflow"), "tests/horovod/test_training.py"


class Together(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """A file at a time to each process, but one for what needs an API server, and two for the trainings of Horovod."""

    def _split_scope(self, nodeid: str) -> str:
        file, _, test = nodeid.partition("::")
        if file == TRAINING:
            return next((f"{file}: {framework}" for framework in FRAMEWORKS if f"[{framework}" in test), file)
        return ONE_SERVER[0] if file.startswith(ONE_SERVER) else file


def longest_first(items: list[pytest.Item]) -> None:
    """Sort whole files; within one the order stays."""
    turns = {TESTS / name: turn for turn, name in enumerate(LONGEST)}
    items.sort(key=lambda item: turns.get(item.path, len(turns)))
