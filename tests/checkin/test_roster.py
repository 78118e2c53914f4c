"""What the roster shows after any order of reports and observations."""

from __future__ import annotations

import pytest

from mpiboot.checkin.messages import WorkerState
from mpiboot.checkin.roster import NoSuchWorkerError, Pod, ReplacedError, Roster, View
from tests.checkin.conftest import report, view


def seen(*pods: Pod) -> View:
    return view(len(pods), dict(enumerate(pods)))


def shown(roster: Roster, index: int = 0) -> tuple[str, str, int, str]:
    worker = roster.workers[index]
    return worker.state, worker.uid, worker.port, worker.reason


def test_nothing_is_known_at_first() -> None:
    assert Roster(view(2)).workers == (
        WorkerState("pi-worker-0", 0, "unknown"),
        WorkerState("pi-worker-1", 1, "unknown"),
    )


def test_what_is_observed_is_shown_until_the_worker_reports() -> None:
    roster = Roster(seen(Pod("pending", "a", reason="Unschedulable: 0/3 nodes are available")))
    assert shown(roster) == ("pending", "a", 0, "Unschedulable: 0/3 nodes are available")
    assert roster.observe(seen(Pod("running", "a", "10.0.0.1"))) == frozenset({0})
    assert roster.workers[0].address == "10.0.0.1"
    assert roster.check_in(0, report(uid="a"))
    assert shown(roster) == ("ready", "a", 2222, "")


def test_a_duplicate_report_changes_nothing() -> None:
    roster = Roster(view(1))
    assert roster.check_in(0, report(uid="a", start="1"))
    assert not roster.check_in(0, report(uid="a", start="1"))


@pytest.mark.parametrize("index", [-1, 2, 999999])
def test_an_index_outside_the_job_is_refused(index: int) -> None:
    with pytest.raises(NoSuchWorkerError, match="job of 2 workers"):
        Roster(view(2)).check_in(index, report())


@pytest.mark.parametrize(
    ("first", "second"),
    [(("a", "1"), ("b", "2")), (("a", "1"), ("a", "2")), (("a", ""), ("b", ""))],
    ids=["another pod", "the same pod, another start", "another pod, starts unknown"],
)
def test_a_restarted_worker_replaces_its_former_self_for_good(first: tuple[str, str], second: tuple[str, str]) -> None:
    roster = Roster(view(1))
    roster.check_in(0, report(2222, *first))
    assert roster.check_in(0, report(2223, *second))
    with pytest.raises(ReplacedError):
        roster.check_in(0, report(2222, *first))
    assert shown(roster) == ("ready", second[0], 2223, "")


OLD, NEW = "old", "new"


@pytest.mark.parametrize(
    ("before", "now", "reported", "state"),
    [
        # The cluster's word about a pod is seconds behind the worker's own.
        (Pod("pending", OLD), Pod("pending", OLD, reason="ContainerCreating"), OLD, "ready"),
        (Pod("pending", OLD), Pod("running", OLD, "10.0.0.1"), OLD, "ready"),
        (Pod("running", OLD), Pod("failed", OLD), NEW, "ready"),
        (Pod("running", OLD), Pod("pending", NEW), NEW, "ready"),
        (Pod("running", OLD), Pod(), NEW, "ready"),
        (Pod(), Pod("pending", NEW), NEW, "ready"),
        (Pod("failed", OLD, reason="10 s"), Pod("failed", OLD, reason="20 s"), OLD, "ready"),
        # An end of the very pod that reported takes its word back.
        (Pod("running", OLD), Pod("failed", OLD), OLD, "failed"),
        (Pod("running", OLD), Pod("pending", NEW), OLD, "pending"),
        (Pod("running", OLD), Pod(), OLD, "unknown"),
        (Pod(), Pod("failed", OLD), OLD, "failed"),
        # A report without a uid is taken for the pod that is there.
        (Pod("running", OLD), Pod("failed", OLD), "", "failed"),
        (Pod("running", OLD), Pod("pending", NEW), "", "pending"),
        (Pod(), Pod("running", NEW), "", "ready"),
    ],
)
def test_only_the_end_of_the_reporting_pod_takes_a_report_back(
    before: Pod, now: Pod, reported: str, state: str
) -> None:
    roster = Roster(seen(before))
    roster.check_in(0, report(uid=reported, start="1"))
    roster.observe(seen(now))
    assert roster.workers[0].state == state


def test_a_container_that_restarts_in_its_pod_is_ready_again_though_its_failure_is_still_observed() -> None:
    roster = Roster(seen(Pod("running", "a")))
    roster.check_in(0, report(uid="a", start="1"))
    roster.observe(seen(Pod("failed", "a", reason="exit code 137")))
    with pytest.raises(ReplacedError):
        roster.check_in(0, report(uid="a", start="1"))
    assert roster.check_in(0, report(uid="a", start="2"))
    roster.observe(seen(Pod("failed", "a", reason="CrashLoopBackOff")))
    assert shown(roster)[0] == "ready"


def test_without_a_start_the_next_life_of_the_same_pod_is_still_taken() -> None:
    roster = Roster(seen(Pod("running", "a")))
    roster.check_in(0, report(uid="a"))
    roster.observe(seen(Pod("failed", "a")))
    assert roster.check_in(0, report(uid="a"))


def test_only_workers_that_differ_are_returned() -> None:
    roster = Roster(seen(Pod("pending"), Pod("pending"), Pod("pending")))
    assert roster.observe(seen(Pod("pending"), Pod("running"), Pod("pending"))) == frozenset({1})
    assert roster.observe(seen(Pod("pending"), Pod("running"), Pod("pending"))) == frozenset()


def test_a_job_that_grows_and_shrinks_keeps_what_it_knows() -> None:
    roster = Roster(view(2))
    roster.check_in(1, report(uid="a"))
    assert roster.observe(view(3)) is None
    assert [worker.state for worker in roster.workers] == ["unknown", "ready", "unknown"]
    assert roster.observe(view(1)) is None
    assert len(roster.workers) == 1
    assert roster.observe(view(2)) is None
    assert shown(roster, 1)[0] == "unknown", "a worker that was taken away has to report again"


def test_a_worker_under_another_name_is_another_worker() -> None:
    roster = Roster(view(1))
    roster.check_in(0, report(uid="a"))
    assert roster.observe(View(("other-worker-0",))) is None
    assert roster.workers == (WorkerState("other-worker-0", 0, "unknown"),)
