"""Which connections the server closes when there are too many, and which refusals it logs."""

from __future__ import annotations

from mpiboot.checkin.admission import Admission
from mpiboot.checkin.refusal_log import RefusalLog


def test_one_too_many_costs_the_crowding_source_its_oldest() -> None:
    admission, cut = Admission(4), []
    arrivals = [("quiet", 1), ("crowd", 2), ("crowd", 3), ("crowd", 4), ("quiet", 5), ("other", 6)]
    for source, key in arrivals:
        admission.enter(source, key, lambda source=source, key=key: cut.append((source, key)))  # type: ignore[misc]
    assert cut == [("crowd", 2), ("quiet", 1)]
    assert len(admission) == 4


def test_one_that_left_makes_room_and_may_leave_again() -> None:
    admission, cut = Admission(1), []
    admission.enter("a", 1, lambda: cut.append(1))
    admission.leave("a", 1)
    admission.leave("a", 1)
    admission.leave("never", 1)
    admission.enter("a", 2, lambda: cut.append(2))
    assert not cut
    assert len(admission) == 1


def test_each_source_and_kind_is_logged_once() -> None:
    log: list[str] = []
    refusals = RefusalLog(log.append)
    for _ in range(100):
        refusals.log("10.0.0.1", 403, "no")
        refusals.log("10.0.0.2", 403, "no")
        refusals.log("10.0.0.1", 413, "too\nlong")
    assert [line.split(" (")[0] for line in log] == [
        "check-in from 10.0.0.1 refused: 403 no",
        "check-in from 10.0.0.2 refused: 403 no",
        "check-in from 10.0.0.1 refused: 413 too long",
    ]


def test_a_flood_of_sources_does_not_grow_the_log_s_memory() -> None:
    refusals = RefusalLog(lambda _: None)
    for i in range(10_000):
        refusals.log(str(i), 403, "no")
    assert len(refusals._seen) == 4096
