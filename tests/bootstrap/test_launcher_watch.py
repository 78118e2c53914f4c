"""When a worker without an operator gives its launcher up: a table of checks, and the decisions."""

from __future__ import annotations

import pytest

from mpiboot.bootstrap.launcher_watch import Absence, Presence, check

HERE, ABSENT, UNKNOWN = Presence.HERE, Presence.ABSENT, Presence.UNKNOWN
LIMIT = 300.0


def ends_at(*checks: tuple[float, Presence]) -> tuple[float, str]:
    """The time of the check after which the worker ends, and why; -1 if it continues."""
    absence = Absence("pi-master", LIMIT, 0.0)
    for at, presence in checks:
        if verdict := absence.verdict(presence, at):
            return at, verdict
    return -1, ""


def absent(first: int, last: int) -> list[tuple[float, Presence]]:
    """A clear absence in every check of that time."""
    return [(at, ABSENT) for at in range(first, last + 1, 5)]


@pytest.mark.parametrize(
    ("checks", "ends"),
    [
        ([(0, HERE), *absent(10, 100)], 40),
        ([(0, HERE), *absent(10, 39), (39, HERE), *absent(45, 74)], -1),  # it was made again
        ([(0, HERE), *absent(10, 39), (39, HERE), *absent(45, 100)], 75),
        ([(0, HERE), (10, ABSENT), (20, UNKNOWN), (30, ABSENT), (40, UNKNOWN), *absent(50, 99)], 60),  # DNS has errors
        ([(0, HERE), (10, ABSENT), (3000, ABSENT), (3005, ABSENT)], -1),  # time alone proves nothing
        ([(0, HERE), *((at, UNKNOWN) for at in range(5, 100_000, 100))], -1),  # DNS is down
        ([(0, ABSENT), (299, ABSENT), (301, ABSENT)], 301),
        ([(0, ABSENT), (299, ABSENT), (301, UNKNOWN)], -1),
        ([(0, ABSENT), (299, HERE), *absent(301, 330)], -1),
        ([(0, ABSENT), (299, HERE), *absent(301, 400)], 331),
    ],
)
def test_a_launcher_is_given_up_only_for_a_clear_and_lasting_absence(
    checks: list[tuple[float, Presence]], ends: float
) -> None:
    assert ends_at(*checks)[0] == ends


def test_the_reason_names_the_launcher_and_the_limit() -> None:
    gone = "the launcher pi-master is gone: its name has not resolved for 30 s"
    assert ends_at((0, HERE), *absent(10, 50))[1] == gone
    assert ends_at((301, ABSENT))[1] == "no launcher pi-master after 301 s (limit 300 s, --init-timeout)"


def test_a_name_that_resolves_is_here() -> None:
    assert check("localhost") is HERE
