"""The decisions of the worker table: they need no I/O, so a table of times and events is enough."""

from __future__ import annotations

from mpiboot.bootstrap.hosts import Endpoint, Entry
from mpiboot.bootstrap.run import supervise
from mpiboot.bootstrap.wait import worker_table
from mpiboot.bootstrap.wait.resolver import Answer
from mpiboot.bootstrap.wait.worker_table import Policy, Verdict, WorkerTable
from mpiboot.checkin.client import Snapshot, WorkerState
from mpiboot.ssh.failure import Failure, Kind

A, B = Endpoint("10.0.0.1", 2222), Endpoint("10.0.0.2", 2222)
REFUSED = Failure(Kind.REFUSED)
PATIENT = Policy(limit=300.0)


def picture(policy: Policy = PATIENT, count: int = 2) -> WorkerTable:
    return WorkerTable([Entry(f"w{i}", 2) for i in range(count)], policy, 0.0)


def tried(table: WorkerTable, now: float) -> list[str]:
    return [host.name for host in table.due(now, 1000)]


def state(index: int, what: str, address: str = "", reason: str = "", uid: str = "") -> WorkerState:
    port = 2222 if address else 0
    return WorkerState(f"w{index}", index, what, address, port, "", uid, reason)  # type: ignore[arg-type]


def snapshot(*workers: WorkerState, connected: bool = True) -> Snapshot:
    return Snapshot(workers, connected)


def ready_by_probe(table: WorkerTable, now: float) -> None:
    table.update_from_file({"w0": A, "w1": B}, now)
    assert sorted(tried(table, now)) == ["w0", "w1"]
    table.update_from_probe("w0", A, None, now)
    table.update_from_probe("w1", B, None, now)


def test_the_job_starts_when_all_workers_have_greeted() -> None:
    table = picture()
    assert table.verdict(0.0) is Verdict.WAIT
    ready_by_probe(table, 1.0)
    assert table.verdict(1.0) is Verdict.GO


def test_a_worker_that_checked_in_needs_no_probe() -> None:
    table = picture(Policy(300.0, other_sources=True))
    table.update_from_stream(snapshot(state(0, "ready", "10.0.0.1"), state(1, "ready", "10.0.0.2")), 0.1)
    assert table.verdict(0.1) is Verdict.GO
    assert tried(table, 0.1) == []


def test_logins_for_all_means_those_that_checked_in_too() -> None:
    table = picture(Policy(300.0, trust_check_in=False, other_sources=True), 1)
    table.update_from_stream(snapshot(state(0, "ready", "10.0.0.1")), 0.1)
    assert table.verdict(0.1) is Verdict.WAIT
    assert tried(table, 0.1) == ["w0"]


def test_dns_is_not_asked_early_where_another_source_may_know() -> None:
    table = picture(Policy(300.0, other_sources=True), 1)
    assert tried(table, 0.0) == []
    assert tried(table, 1.4) == []
    assert tried(table, 1.6) == ["w0"]


def test_dns_is_asked_at_once_where_no_other_source_knows() -> None:
    assert sorted(tried(picture(), 0.0)) == ["w0", "w1"]


def test_dns_is_not_asked_for_a_pod_that_does_not_run() -> None:
    table = picture(Policy(300.0, other_sources=True), 1)
    table.update_from_stream(snapshot(state(0, "pending")), 0.1)
    assert tried(table, 500.0) == []
    assert table.next_due() == float("inf")


def test_dns_is_asked_again_when_the_stream_is_lost() -> None:
    table = picture(Policy(300.0, other_sources=True), 1)
    table.update_from_stream(snapshot(state(0, "pending")), 0.1)
    assert tried(table, 5.0) == []
    table.update_from_stream(snapshot(state(0, "pending"), connected=False), 6.0)
    assert tried(table, 6.0) == ["w0"]


def test_dns_is_asked_for_a_worker_that_runs_and_cannot_check_in() -> None:
    table = picture(Policy(300.0, other_sources=True), 1)
    table.update_from_stream(snapshot(state(0, "running")), 0.1)
    assert tried(table, 5.0) == []
    assert tried(table, 5.2) == ["w0"]


def test_the_clock_runs_from_the_start_without_a_stream() -> None:
    table = picture(Policy(300.0))
    assert table.gives_up_at(0.0) == 300.0
    assert table.verdict(299.9) is Verdict.WAIT
    assert table.verdict(300.0) is Verdict.OUT_OF_TIME


def test_a_pod_in_a_queue_costs_no_time() -> None:
    table = picture(Policy(300.0, other_sources=True))
    pending = state(1, "pending", reason="Unschedulable: 0/3 nodes have nvidia.com/gpu")
    table.update_from_stream(snapshot(state(0, "ready", "10.0.0.1"), pending), 1.0)
    assert table.verdict(5000.0) is Verdict.WAIT
    assert table.waiting()[0].why_not == "Unschedulable: 0/3 nodes have nvidia.com/gpu"
    table.update_from_stream(snapshot(state(0, "ready", "10.0.0.1"), state(1, "running", "10.0.0.2")), 5000.0)
    assert table.verdict(5299.0) is Verdict.WAIT
    assert table.verdict(5300.0) is Verdict.OUT_OF_TIME


def test_a_worker_that_is_given_up_does_not_keep_the_launcher_busy() -> None:
    """Others are pending and may still come: the next check is due when something can change, not in the past."""
    table = picture(Policy(300.0, at_least=1, other_sources=True))
    table.update_from_stream(snapshot(state(0, "running", "10.0.0.1"), state(1, "pending")), 1.0)
    assert table.verdict(400.0) is Verdict.WAIT
    assert table.gives_up_at(400.0) == float("inf")


def test_a_worker_that_restarts_while_others_are_pending_has_its_time_again() -> None:
    table = picture(Policy(300.0, other_sources=True))
    table.update_from_stream(snapshot(state(0, "ready", "10.0.0.1", uid="a"), state(1, "pending")), 1.0)
    assert table.verdict(5000.0) is Verdict.WAIT
    table.update_from_stream(snapshot(state(0, "running", "10.0.0.9", uid="b"), state(1, "pending")), 5000.0)
    assert table.verdict(5299.0) is Verdict.WAIT
    assert table.verdict(5301.0) is Verdict.OUT_OF_TIME


def test_a_stream_that_is_lost_for_long_starts_the_clock_of_every_worker() -> None:
    table = picture(Policy(300.0, other_sources=True), 1)
    table.update_from_stream(snapshot(state(0, "pending")), 1.0)
    table.update_from_stream(snapshot(state(0, "pending"), connected=False), 100.0)
    assert table.verdict(150.0) is Verdict.WAIT
    assert table.verdict(161.0) is Verdict.WAIT  # from here on the clock runs
    assert table.verdict(460.0) is Verdict.OUT_OF_TIME


def test_some_workers_may_be_late_for_ever_if_enough_are_there() -> None:
    table = picture(Policy(300.0, at_least=1))
    table.update_from_file({"w0": A}, 1.0)
    assert "w0" in tried(table, 1.0)
    table.update_from_probe("w0", A, None, 1.0)
    assert table.verdict(1.0) is Verdict.GO


def test_an_old_answer_is_confirmed_before_the_start() -> None:
    table = picture()
    table.update_from_file({"w0": A, "w1": B}, 0.0)
    tried(table, 0.0)
    table.update_from_probe("w0", A, None, 0.0)
    table.update_from_probe("w1", B, REFUSED, 0.0)
    assert "w1" in tried(table, 60.0)
    table.update_from_probe("w1", B, None, 60.0)
    assert table.verdict(60.0) is Verdict.WAIT
    assert tried(table, 60.0) == ["w0"]
    table.update_from_probe("w0", A, None, 60.1)
    assert table.verdict(60.1) is Verdict.GO


def test_a_probe_of_an_old_address_does_not_count() -> None:
    table = picture(count=1)
    table.update_from_file({"w0": A}, 0.0)
    assert tried(table, 0.0) == ["w0"]
    table.update_from_file({"w0": B}, 0.1)
    table.update_from_probe("w0", A, None, 0.2)
    assert table.ready_count == 0
    assert tried(table, 0.2) == ["w0"]


def test_a_stream_overrides_a_file_and_a_file_overrides_dns() -> None:
    table = picture(Policy(300.0), 1)
    host = table.workers["w0"]
    table.update_from_dns(Answer("w0", "10.0.0.7"), 0.1)
    assert host.endpoint == Endpoint("10.0.0.7")
    table.update_from_file({"w0": A}, 0.2)
    assert host.endpoint == A
    table.update_from_stream(snapshot(state(0, "running", "10.0.0.9")), 0.3)
    assert host.endpoint == Endpoint("10.0.0.9", 2222)


def test_dns_that_names_a_dead_worker_is_asked_again() -> None:
    table = picture(Policy(300.0), 1)
    tried(table, 0.0)
    table.update_from_dns(Answer("w0", "10.0.0.7"), 0.0)
    now = 0.0
    for _ in range(8):
        now = max(now, table.next_due())
        assert tried(table, now) == ["w0"]
        table.update_from_probe("w0", Endpoint("10.0.0.7"), REFUSED, now)
    assert table.workers["w0"].ask_again
    table.update_from_dns(Answer("w0", "10.0.0.8"), now)
    assert table.workers["w0"].endpoint == Endpoint("10.0.0.8")


def test_only_what_happens_is_a_change() -> None:
    table = picture(count=1)
    table.update_from_file({"w0": A}, 0.0)
    tried(table, 0.0)
    table.update_from_probe("w0", A, REFUSED, 1.0)
    changed = table.changed_at
    for now in (2.0, 3.0, 4.0):
        tried(table, now)
        table.update_from_probe("w0", A, REFUSED, now)
    assert table.changed_at == changed


def test_elastic_jobs_take_the_workers_of_their_source() -> None:
    table = picture(Policy(300.0, at_least=1, elastic=True))
    table.update_from_file({"w0": A, "w1": B, "w2": Endpoint("10.0.0.3", 2222)}, 0.0)
    assert [(host.name, host.slots) for host in table.workers.values()] == [("w0", 2), ("w1", 2), ("w2", 2)]
    table.update_from_file({"w2": Endpoint("10.0.0.3", 2222)}, 1.0)
    assert list(table.workers) == ["w2"]
    table.update_from_file({}, 2.0)  # the file is just being written
    assert [(host.name, host.endpoint) for host in table.workers.values()] == [("w2", Endpoint("10.0.0.3", 2222))]


def test_a_worker_of_an_elastic_job_may_miss_one_probe() -> None:
    table = picture(Policy(300.0, at_least=1, elastic=True), 1)
    table.update_from_file({"w0": A}, 0.0)
    table.update_from_probe("w0", A, None, 0.1)
    late = Failure(Kind.TIMED_OUT, "no answer")
    table.update_from_probe("w0", A, late, 6.0)
    assert [host.name for host in table.ready()] == ["w0"]
    assert [host.name for host in table.due(6.0, 9)] == ["w0"]
    table.update_from_probe("w0", A, late, 9.0)
    assert table.ready() == []
    table.update_from_probe("w0", A, None, 10.0)
    assert [host.name for host in table.ready()] == ["w0"]


def test_elastic_jobs_wait_for_workers_that_they_do_not_know_yet() -> None:
    table = picture(Policy(300.0, at_least=2, elastic=True), 1)
    table.update_from_file({"w0": A}, 0.0)
    tried(table, 0.0)
    table.update_from_probe("w0", A, None, 0.0)
    assert table.verdict(0.0) is Verdict.WAIT
    assert table.gives_up_at(0.0) == 300.0
    assert table.verdict(300.0) is Verdict.OUT_OF_TIME
    table.update_from_file({"w0": A, "w1": B}, 299.0)
    assert sorted(tried(table, 299.0)) == ["w0", "w1"]
    table.update_from_probe("w0", A, None, 299.0)
    table.update_from_probe("w1", B, None, 299.0)
    assert table.verdict(299.0) is Verdict.GO


def test_a_lost_worker_is_known_by_its_state_or_its_uid() -> None:
    table = picture(Policy(300.0, other_sources=True))
    both = (state(0, "ready", "10.0.0.1", uid="a"), state(1, "ready", "10.0.0.2", uid="b"))
    table.update_from_stream(snapshot(*both), 1.0)
    began = supervise.pod_uids(table)
    assert supervise.lost_worker(table, began) == ""
    table.update_from_stream(snapshot(both[0], state(1, "failed", reason="OOMKilled", uid="b")), 2.0)
    assert supervise.lost_worker(table, began) == "worker w1 was lost while the job ran: OOMKilled"
    table.update_from_stream(snapshot(both[0], state(1, "ready", "10.0.0.5", uid="c")), 3.0)
    assert supervise.lost_worker(table, began) == "worker w1 was lost while the job ran: its pod was replaced"


def test_two_hosts_are_tried_often_and_a_thousand_seldom() -> None:
    assert worker_table.until_next_try(2, 0.0, 1) < 0.1
    assert worker_table.until_next_try(1000, 0.0, 1) < 5.0
    # A connection costs about 0.15 ms of processor time: at rest 1,000 hosts may take 1 % of a core.
    assert 1000 / worker_table.until_next_try(1000, 3600.0, 1) < 50
    assert 1000 / worker_table.until_next_look_up(1000, 3600.0, 1) < 15


def test_a_worker_whose_end_is_explained_counts_as_started_again() -> None:
    table = picture(Policy(300.0, other_sources=True, elastic=True))

    def started(uid: str, start: str, what: str = "ready") -> WorkerState:
        return state(1, what, "10.0.0.2" if what == "ready" else "", uid=uid)._replace(start=start)

    w0 = state(0, "ready", "10.0.0.1", uid="u0")._replace(start="s0")
    table.update_from_stream(snapshot(w0, started("u1", "s1")), 1.0)
    assert table.starts == {}
    table.update_from_probe("w1", B, REFUSED, 5.0)  # cut off, and there again
    table.update_from_probe("w1", B, None, 9.0)
    assert table.starts == {}
    table.update_from_stream(snapshot(w0, started("u1", "", "failed")), 10.0)
    table.update_from_stream(snapshot(w0, started("u1", "s2")), 11.0)  # its container ended and runs again
    assert table.starts == {"w1": 1}
    table.update_from_stream(snapshot(w0, started("u2", "", "running")), 12.0)  # its pod was replaced
    assert table.starts["w1"] == 2
    table.update_from_stream(snapshot(w0), 13.0)
    table.update_from_stream(snapshot(w0, started("u3", "s4")), 14.0)  # the job was made smaller and larger
    assert table.starts["w1"] == 3


def test_a_worker_that_the_address_file_drops_or_moves_counts_as_started_again() -> None:
    table = picture(Policy(300.0, other_sources=True, elastic=True))
    table.update_from_file({"w0": A, "w1": B}, 0.1)
    assert table.starts == {}
    table.update_from_file({"w0": A}, 1.0)
    table.update_from_file({"w0": A, "w1": B}, 2.0)
    assert table.starts == {"w1": 1}
    table.update_from_file({"w0": A, "w1": Endpoint("10.0.0.9", 2222)}, 3.0)
    assert table.starts == {"w1": 2}
