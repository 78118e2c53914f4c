"""When a worker that nobody looks after gives its launcher up: a table of looks, and what follows from them."""

from __future__ import annotations

import pytest

from mpiboot.bootstrap.absence import Absence, Seen, look

HERE, ABSENT, UNKNOWN = Seen.HERE, Seen.ABSENT, Seen.UNKNOWN
LIMIT = 300.0


def ends_at(*looks: tuple[float, Seen]) -> tuple[float, str]:
    """The time of the look after which the worker ends, and why; -1 if it goes on."""
    absence = Absence("pi-master", LIMIT, 0.0)
    for at, seen in looks:
        if verdict := absence.verdict(seen, at):
            return at, verdict
    return -1, ""


def absent(first: int, last: int) -> list[tuple[float, Seen]]:
    """A clear absence in every look of that time."""
    return [(at, ABSENT) for at in range(first, last + 1, 5)]


@pytest.mark.parametrize(
    ("looks", "ends"),
    [
        ([(0, HERE), *absent(10, 100)], 40),
        ([(0, HERE), *absent(10, 39), (39, HERE), *absent(45, 74)], -1),  # one that was made anew
        ([(0, HERE), *absent(10, 39), (39, HERE), *absent(45, 100)], 75),
        ([(0, HERE), (10, ABSENT), (20, UNKNOWN), (30, ABSENT), (40, UNKNOWN), *absent(50, 99)], 60),  # DNS is ill
        ([(0, HERE), (10, ABSENT), (3000, ABSENT), (3005, ABSENT)], -1),  # time alone says nothing
        ([(0, HERE), *((at, UNKNOWN) for at in range(5, 100_000, 100))], -1),  # DNS is down
        ([(0, ABSENT), (299, ABSENT), (301, ABSENT)], 301),
        ([(0, ABSENT), (299, ABSENT), (301, UNKNOWN)], -1),
        ([(0, ABSENT), (299, HERE), *absent(301, 330)], -1),
        ([(0, ABSENT), (299, HERE), *absent(301, 400)], 331),
    ],
)
def test_a_launcher_is_given_up_only_for_a_clear_and_lasting_absence(looks: list[tuple[float, Seen]],
                                                                     ends: float) -> None:
    assert ends_at(*looks)[0] == ends


def test_the_reason_names_the_launcher_and_the_limit() -> None:
    assert ends_at((0, HERE), *absent(10, 50))[1] == "the launcher pi-master is gone, its name for 30 s"
    assert ends_at((301, ABSENT))[1] == "no launcher pi-master after 301 s (limit 300 s, --init-timeout)"


def test_a_name_that_resolves_is_here() -> None:
    assert look("localhost") is HERE
