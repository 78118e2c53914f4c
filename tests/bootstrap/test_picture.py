"""What follows from what is known of the workers: decided without I/O, so a table of moments is enough."""

from __future__ import annotations

from mpiboot.bootstrap import lost, pace
from mpiboot.bootstrap.addresses import Place
from mpiboot.bootstrap.host import Policy
from mpiboot.bootstrap.hostfile import Entry
from mpiboot.bootstrap.picture import Picture, Verdict
from mpiboot.bootstrap.resolver import Answer
from mpiboot.checkin.client import Snapshot, WorkerState
from mpiboot.ssh.failure import Failure, Kind

A, B = Place("10.0.0.1", 2222), Place("10.0.0.2", 2222)
REFUSED = Failure(Kind.REFUSED)
PATIENT = Policy(limit=300.0)


def picture(policy: Policy = PATIENT, count: int = 2) -> Picture:
    return Picture([Entry(f"w{i}", 2) for i in range(count)], policy, 0.0)


def tried(seen: Picture, now: float) -> list[str]:
    return [host.name for host in seen.due(now, 1000)]


def state(index: int, what: str, address: str = "", reason: str = "", uid: str = "") -> WorkerState:
    port = 2222 if address else 0
    return WorkerState(f"w{index}", index, what, address, port, "", uid, reason)  # type: ignore[arg-type]


def snapshot(*workers: WorkerState, connected: bool = True) -> Snapshot:
    return Snapshot(workers, connected)


def ready_by_probe(seen: Picture, now: float) -> None:
    seen.told_by_file({"w0": A, "w1": B}, now)
    assert sorted(tried(seen, now)) == ["w0", "w1"]
    seen.probed("w0", A, None, now)
    seen.probed("w1", B, None, now)


def test_it_goes_when_all_have_greeted() -> None:
    seen = picture()
    assert seen.verdict(0.0) is Verdict.WAIT
    ready_by_probe(seen, 1.0)
    assert seen.verdict(1.0) is Verdict.GO


def test_a_worker_that_checked_in_needs_no_probe() -> None:
    seen = picture(Policy(300.0, told_elsewhere=True))
    seen.told_by_stream(snapshot(state(0, "ready", "10.0.0.1"), state(1, "ready", "10.0.0.2")), 0.1)
    assert seen.verdict(0.1) is Verdict.GO
    assert tried(seen, 0.1) == []


def test_logins_for_all_means_those_that_checked_in_too() -> None:
    seen = picture(Policy(300.0, trust_check_in=False, told_elsewhere=True), 1)
    seen.told_by_stream(snapshot(state(0, "ready", "10.0.0.1")), 0.1)
    assert seen.verdict(0.1) is Verdict.WAIT
    assert tried(seen, 0.1) == ["w0"]


def test_dns_is_not_asked_early_where_somebody_else_may_tell() -> None:
    seen = picture(Policy(300.0, told_elsewhere=True), 1)
    assert tried(seen, 0.0) == []
    assert tried(seen, 1.4) == []
    assert tried(seen, 1.6) == ["w0"]


def test_dns_is_asked_at_once_where_nobody_else_can_tell() -> None:
    assert sorted(tried(picture(), 0.0)) == ["w0", "w1"]


def test_dns_is_not_asked_for_a_pod_that_does_not_run() -> None:
    seen = picture(Policy(300.0, told_elsewhere=True), 1)
    seen.told_by_stream(snapshot(state(0, "pending")), 0.1)
    assert tried(seen, 500.0) == []
    assert seen.next_due() == float("inf")


def test_dns_is_asked_again_when_the_stream_is_lost() -> None:
    seen = picture(Policy(300.0, told_elsewhere=True), 1)
    seen.told_by_stream(snapshot(state(0, "pending")), 0.1)
    assert tried(seen, 5.0) == []
    seen.told_by_stream(snapshot(state(0, "pending"), connected=False), 6.0)
    assert tried(seen, 6.0) == ["w0"]


def test_dns_is_asked_for_a_worker_that_runs_and_cannot_check_in() -> None:
    seen = picture(Policy(300.0, told_elsewhere=True), 1)
    seen.told_by_stream(snapshot(state(0, "running")), 0.1)
    assert tried(seen, 5.0) == []
    assert tried(seen, 5.2) == ["w0"]


def test_the_clock_runs_from_the_start_without_a_stream() -> None:
    seen = picture(Policy(300.0))
    assert seen.gives_up_at(0.0) == 300.0
    assert seen.verdict(299.9) is Verdict.WAIT
    assert seen.verdict(300.0) is Verdict.OUT_OF_TIME


def test_a_pod_in_a_queue_costs_no_time() -> None:
    seen = picture(Policy(300.0, told_elsewhere=True))
    pending = state(1, "pending", reason="Unschedulable: 0/3 nodes have nvidia.com/gpu")
    seen.told_by_stream(snapshot(state(0, "ready", "10.0.0.1"), pending), 1.0)
    assert seen.verdict(5000.0) is Verdict.WAIT
    assert seen.waiting()[0].why_not == "Unschedulable: 0/3 nodes have nvidia.com/gpu"
    seen.told_by_stream(snapshot(state(0, "ready", "10.0.0.1"), state(1, "running", "10.0.0.2")), 5000.0)
    assert seen.verdict(5299.0) is Verdict.WAIT
    assert seen.verdict(5300.0) is Verdict.OUT_OF_TIME


def test_a_worker_that_is_given_up_does_not_keep_the_launcher_busy() -> None:
    """Others are pending and may yet come: the next look is due when something can change, not in the past."""
    seen = picture(Policy(300.0, at_least=1, told_elsewhere=True))
    seen.told_by_stream(snapshot(state(0, "running", "10.0.0.1"), state(1, "pending")), 1.0)
    assert seen.verdict(400.0) is Verdict.WAIT
    assert seen.gives_up_at(400.0) == float("inf")


def test_a_worker_that_restarts_while_others_are_pending_has_its_time_anew() -> None:
    seen = picture(Policy(300.0, told_elsewhere=True))
    seen.told_by_stream(snapshot(state(0, "ready", "10.0.0.1", uid="a"), state(1, "pending")), 1.0)
    assert seen.verdict(5000.0) is Verdict.WAIT
    seen.told_by_stream(snapshot(state(0, "running", "10.0.0.9", uid="b"), state(1, "pending")), 5000.0)
    assert seen.verdict(5299.0) is Verdict.WAIT
    assert seen.verdict(5301.0) is Verdict.OUT_OF_TIME


def test_a_stream_that_is_lost_for_long_excuses_nobody() -> None:
    seen = picture(Policy(300.0, told_elsewhere=True), 1)
    seen.told_by_stream(snapshot(state(0, "pending")), 1.0)
    seen.told_by_stream(snapshot(state(0, "pending"), connected=False), 100.0)
    assert seen.verdict(150.0) is Verdict.WAIT
    assert seen.verdict(161.0) is Verdict.WAIT  # from here on the clock runs
    assert seen.verdict(460.0) is Verdict.OUT_OF_TIME


def test_some_workers_may_be_late_for_ever_if_enough_are_there() -> None:
    seen = picture(Policy(300.0, at_least=1))
    seen.told_by_file({"w0": A}, 1.0)
    assert "w0" in tried(seen, 1.0)
    seen.probed("w0", A, None, 1.0)
    assert seen.verdict(1.0) is Verdict.GO


def test_an_old_answer_is_confirmed_before_the_start() -> None:
    seen = picture()
    seen.told_by_file({"w0": A, "w1": B}, 0.0)
    tried(seen, 0.0)
    seen.probed("w0", A, None, 0.0)
    seen.probed("w1", B, REFUSED, 0.0)
    assert "w1" in tried(seen, 60.0)
    seen.probed("w1", B, None, 60.0)
    assert seen.verdict(60.0) is Verdict.WAIT
    assert tried(seen, 60.0) == ["w0"]
    seen.probed("w0", A, None, 60.1)
    assert seen.verdict(60.1) is Verdict.GO


def test_an_outcome_about_an_old_address_says_nothing() -> None:
    seen = picture(count=1)
    seen.told_by_file({"w0": A}, 0.0)
    assert tried(seen, 0.0) == ["w0"]
    seen.told_by_file({"w0": B}, 0.1)
    seen.probed("w0", A, None, 0.2)
    assert seen.ready_count == 0
    assert tried(seen, 0.2) == ["w0"]


def test_a_stream_knows_better_than_a_file_and_a_file_better_than_dns() -> None:
    seen = picture(Policy(300.0), 1)
    host = seen.hosts["w0"]
    seen.looked_up(Answer("w0", "10.0.0.7"), 0.1)
    assert host.place == Place("10.0.0.7")
    seen.told_by_file({"w0": A}, 0.2)
    assert host.place == A
    seen.told_by_stream(snapshot(state(0, "running", "10.0.0.9")), 0.3)
    assert host.place == Place("10.0.0.9", 2222)


def test_dns_that_names_a_dead_worker_is_asked_again() -> None:
    seen = picture(Policy(300.0), 1)
    tried(seen, 0.0)
    seen.looked_up(Answer("w0", "10.0.0.7"), 0.0)
    now = 0.0
    for _ in range(8):
        now = max(now, seen.next_due())
        assert tried(seen, now) == ["w0"]
        seen.probed("w0", Place("10.0.0.7"), REFUSED, now)
    assert seen.hosts["w0"].ask_again
    seen.looked_up(Answer("w0", "10.0.0.8"), now)
    assert seen.hosts["w0"].place == Place("10.0.0.8")


def test_only_what_happens_is_a_change() -> None:
    seen = picture(count=1)
    seen.told_by_file({"w0": A}, 0.0)
    tried(seen, 0.0)
    seen.probed("w0", A, REFUSED, 1.0)
    changed = seen.changed_at
    for now in (2.0, 3.0, 4.0):
        tried(seen, now)
        seen.probed("w0", A, REFUSED, now)
    assert seen.changed_at == changed


def test_elastic_jobs_take_whom_they_are_told_of() -> None:
    seen = picture(Policy(300.0, at_least=1, elastic=True))
    seen.told_by_file({"w0": A, "w1": B, "w2": Place("10.0.0.3", 2222)}, 0.0)
    assert [(host.name, host.slots) for host in seen.hosts.values()] == [("w0", 2), ("w1", 2), ("w2", 2)]
    seen.told_by_file({"w2": Place("10.0.0.3", 2222)}, 1.0)
    assert list(seen.hosts) == ["w2"]
    seen.told_by_file({}, 2.0)  # whoever writes it has only begun
    assert [(host.name, host.place) for host in seen.hosts.values()] == [("w2", Place("10.0.0.3", 2222))]


def test_a_worker_of_an_elastic_job_may_miss_one_look() -> None:
    seen = picture(Policy(300.0, at_least=1, elastic=True), 1)
    seen.told_by_file({"w0": A}, 0.0)
    seen.probed("w0", A, None, 0.1)
    late = Failure(Kind.TIMED_OUT, "no answer")
    seen.probed("w0", A, late, 6.0)
    assert [host.name for host in seen.ready()] == ["w0"]
    assert [host.name for host in seen.due(6.0, 9)] == ["w0"]
    seen.probed("w0", A, late, 9.0)
    assert seen.ready() == []
    seen.probed("w0", A, None, 10.0)
    assert [host.name for host in seen.ready()] == ["w0"]


def test_elastic_jobs_wait_for_workers_they_have_not_been_told_of() -> None:
    seen = picture(Policy(300.0, at_least=2, elastic=True), 1)
    seen.told_by_file({"w0": A}, 0.0)
    tried(seen, 0.0)
    seen.probed("w0", A, None, 0.0)
    assert seen.verdict(0.0) is Verdict.WAIT
    assert seen.gives_up_at(0.0) == 300.0
    assert seen.verdict(300.0) is Verdict.OUT_OF_TIME
    seen.told_by_file({"w0": A, "w1": B}, 299.0)
    assert sorted(tried(seen, 299.0)) == ["w0", "w1"]
    seen.probed("w0", A, None, 299.0)
    seen.probed("w1", B, None, 299.0)
    assert seen.verdict(299.0) is Verdict.GO


def test_a_lost_worker_is_told_by_its_state_or_its_uid() -> None:
    seen = picture(Policy(300.0, told_elsewhere=True))
    both = (state(0, "ready", "10.0.0.1", uid="a"), state(1, "ready", "10.0.0.2", uid="b"))
    seen.told_by_stream(snapshot(*both), 1.0)
    began = lost.uids(seen)
    assert lost.first(seen, began) == ""
    seen.told_by_stream(snapshot(both[0], state(1, "failed", reason="OOMKilled", uid="b")), 2.0)
    assert lost.first(seen, began) == "worker w1 was lost while the job ran: OOMKilled"
    seen.told_by_stream(snapshot(both[0], state(1, "ready", "10.0.0.5", uid="c")), 3.0)
    assert lost.first(seen, began) == "worker w1 was lost while the job ran: its pod was replaced"


def test_two_hosts_are_tried_often_and_a_thousand_seldom() -> None:
    assert pace.until_next_try(2, 0.0, 1) < 0.1
    assert pace.until_next_try(1000, 0.0, 1) < 5.0
    # A connection costs about 0.15 ms of processor time: at rest 1,000 hosts may take 1 % of a core.
    assert 1000 / pace.until_next_try(1000, 3600.0, 1) < 50
    assert 1000 / pace.until_next_look_up(1000, 3600.0, 1) < 15
