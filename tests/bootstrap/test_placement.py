"""Ranks that all run on the launcher: the launcher warns of them, and never without a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mpiboot.bootstrap.hosts import Entry
from mpiboot.bootstrap.run.placement import (
    Placement,
    RunningMpirun,
    Slots,
    at_the_end,
    on_purpose,
    ranks_asked_for,
    slots_of,
)

if TYPE_CHECKING:
    from tests.bootstrap.conftest import Job

FOUR = Slots(own=0, elsewhere=4, workers=("w0.pi.ns.svc", "w1.pi.ns.svc"))
# Open MPI 5 overlooks a hostfile if this variable is not there, and then starts every rank where it is.
IGNORED = ("env", "-u", "PRTE_MCA_prte_default_hostfile", "mpirun", "--oversubscribe")
LOUD = "WARNING: all 4 ranks run on the launcher, though other hosts have 4 slots"


def judged(ranks: int, contacts: tuple[int, ...] = (0, 0), slots: Slots = FOUR, *argv: str) -> str:
    placement = Placement(slots)
    seen = [RunningMpirun(7, argv or ("mpirun", "-n", str(ranks), "p"), ranks)]
    placement.warning([], 0, 0.0)
    placement.warning(seen, contacts[0], 1.0)
    return placement.warning(seen, contacts[1], 2.0)


def test_ranks_here_and_no_contact_is_wrong() -> None:
    assert "all 4 ranks run on the launcher" in judged(4)


def test_a_contact_makes_it_right() -> None:
    assert judged(4, (1, 2)) == ""
    assert judged(4, (0, 1)) == ""


def test_one_rank_on_the_launcher_is_fine() -> None:
    assert judged(1) == ""
    assert judged(0) == ""


def test_a_launcher_with_slots_may_use_them() -> None:
    assert judged(2, (0, 0), FOUR._replace(own=2)) == ""
    assert judged(3, (0, 0), FOUR._replace(own=2)) != ""


def test_a_short_moment_is_not_enough() -> None:
    """Between the first rank here and the first ssh there may be a moment."""
    placement = Placement(FOUR)
    assert placement.warning([RunningMpirun(7, ("mpirun",), 4)], 0, 1.0) == ""
    assert placement.warning([RunningMpirun(7, ("mpirun",), 4)], 0, 1.1) == ""


def test_contacts_of_the_first_mpirun_do_not_count_for_the_second() -> None:
    placement = Placement(FOUR)
    assert placement.warning([RunningMpirun(7, ("mpirun",), 2)], 2, 1.0) == ""
    second = [RunningMpirun(8, ("mpirun",), 4)]
    placement.warning(second, 2, 5.0)
    assert placement.warning(second, 2, 6.0) != ""


@pytest.mark.parametrize(
    ("line", "purpose"),
    [
        ("mpirun -n 4 p", False),
        ("mpirun -n 4 -H localhost:4 p", True),
        ("mpirun -n 4 --host localhost p", True),
        ("mpirun -n 4 --host=other p", True),
        ("mpirun -n 4 -H w0.pi.ns.svc:2,w1:2 p", False),
        ("mpirun -n 4 -hosts localhost,w1 p", False),
        ("mpiexec -launcher fork -n 4 p", True),
        ("mpirun -n 4 p -host localhost", True),
    ],
)
def test_a_command_line_may_choose_its_hosts(line: str, purpose: bool) -> None:
    assert on_purpose(line.split(), FOUR.workers) is purpose


@pytest.mark.parametrize(
    ("line", "ranks"),
    [("mpirun p", None), ("mpirun -n 4 p -n 9", 4), ("mpirun -np 2 a : -np 3 b", 5), ("mpirun --np=3 p", 3)],
)
def test_ranks_are_counted_from_the_command_line(line: str, ranks: int | None) -> None:
    assert ranks_asked_for(line.split()) == ranks


@pytest.mark.parametrize(
    ("line", "contacts", "code", "hydra", "wrong"),
    [
        ("mpirun -n 4 p", 0, 0, False, True),
        ("mpirun p", 0, 0, False, True),
        ("mpiexec p", 0, 0, True, False),
        ("/opt/bin/mpirun -n 4 p", 0, 0, False, True),
        ("mpirun -n 1 p", 0, 0, False, False),
        ("mpirun -n 4 p", 1, 0, False, False),
        ("mpirun -n 4 p", 0, 1, False, False),
        ("mpirun --version", 0, 0, False, False),
        ("horovodrun -np 4 p", 0, 0, False, False),
        ("sh -c mpirun", 0, 0, False, False),
    ],
)
def test_an_mpirun_too_quick_to_be_seen_is_judged_at_the_end(
    line: str, contacts: int, code: int, hydra: bool, wrong: bool
) -> None:
    assert bool(at_the_end(line.split(), FOUR, contacts, code, fills_slots=not hydra)) is wrong


def test_slots_are_counted_by_side() -> None:
    entries = (Entry("pi-launcher", 1), Entry("w0", 2), Entry("w1", 3))
    assert slots_of(entries, "pi-launcher") == Slots(1, 5, ("w0", "w1"))


def test_an_overlooked_hostfile_is_warned_of(openmpi: Job) -> None:
    launch = openmpi.launch(*IGNORED, "-n", 4, "sleep", 2)
    launch.says(LOUD)
    assert launch.ends() == 0


def test_an_overlooked_hostfile_ends_the_job_where_that_was_asked_for(openmpi: Job) -> None:
    launch = openmpi.launch(*IGNORED, "-n", 4, "sleep", 600, options=("--strict-placement",))
    assert launch.ends() == 125
    assert LOUD.removeprefix("WARNING: ") in launch.stderr


def test_an_overlooked_hostfile_is_found_in_a_script_too(openmpi: Job) -> None:
    launch = openmpi.launch("sh", "-c", f"{' '.join(IGNORED)} -n 4 sleep 2; true")
    launch.says(LOUD)
    assert launch.ends() == 0


def test_a_job_that_is_over_at_once_is_judged_as_well(openmpi: Job) -> None:
    env = {"PRTE_MCA_prte_default_hostfile": "/dev/null"}
    launch = openmpi.launch("mpirun", "--oversubscribe", "-n", 4, "true", options=("--strict-placement",), env=env)
    assert launch.ends() == 125, launch.stderr
    assert "all 4 ranks run on the launcher" in launch.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("mpirun", "-n", "1", "sleep", "1"),
        ("sh", "-c", "sleep 1 & sleep 1 & sleep 1 & wait"),
        ("mpirun", "-n", "2", "--host", "localhost:2", "sleep", "1"),
        ("mpirun", "--version"),
        ("mpirun", "-n", "4", "sleep", "1"),
    ],
)
def test_a_correct_placement_is_not_warned_of(openmpi: Job, command: tuple[str, ...]) -> None:
    launch = openmpi.launch(*command, options=("--strict-placement",))
    assert launch.ends() == 0, launch.stderr
    assert "run on the launcher" not in launch.stderr
