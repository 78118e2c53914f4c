"""Users and janitors delete what a job needs: its launcher's Job, its Secret. Its program must not run twice."""

from __future__ import annotations

import signal
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from mpiboot.controller import deadline
from mpiboot.controller.dead_workers import with_other_keys
from mpiboot.controller.deadline import Stopwatch
from mpiboot.controller.status import latest_events, next_status
from mpiboot.kube.pod_projection import pod_view
from tests.controller.conftest import eventually, holds
from tests.controller.test_decisions import NOW, planned, pod, seen, stored, todo

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.controller.conftest import Object, Operator, World

    Start = Callable[..., Operator]


def running(world: World) -> Object:
    """A job whose launcher runs, and its launcher's pod."""
    world.submit()
    world.started()
    world.run_workers(ready=True)
    pod = world.launcher_pod()
    world.phase(pod, "Running")
    eventually("a running job", lambda: world.condition("Running").get("status") == "True")
    eventually("the launcher's uid", lambda: world.status().get("launcherJob"))
    return pod


def test_an_outcome_is_kept_when_a_user_deletes_the_job_that_holds_it(world: World) -> None:
    """The Job's end and its deletion come together: there is no time to write a status in between."""
    running(world)
    world.launcher_ends("Complete")
    world.delete("Job", "job-launcher")
    eventually("success", lambda: world.condition("Succeeded").get("status") == "True")
    holds(lambda: world.launcher() is None, 2)
    assert "launcherJob" not in world.status()


def test_a_program_that_ended_well_does_not_run_again_before_its_job_says_so(world: World) -> None:
    pod = running(world)
    world.phase(pod, "Succeeded")
    world.delete("Job", "job-launcher")
    eventually("success", lambda: world.condition("Succeeded").get("status") == "True")
    holds(lambda: world.launcher() is None, 2)


def test_a_launcher_that_a_user_deletes_in_its_midst_runs_again(world: World) -> None:
    running(world)
    before = world.launcher()
    assert before
    world.delete("Job", "job-launcher")
    after = eventually("another launcher", world.launcher)
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    eventually("its uid", lambda: world.status().get("launcherJob") == after["metadata"]["uid"])


@pytest.mark.usefixtures("unwatched")
def test_a_launcher_that_is_gone_after_a_restart_of_the_operator_does_not_run_again(
    start_operator: Start, bare_world: World
) -> None:
    world = bare_world
    flags = (f"--namespace={world.namespace}", "--no-leader-election")
    first = start_operator(*flags)
    running(world)
    first.stop(signal.SIGKILL)
    world.launcher_ends("Complete")
    world.delete("Job", "job-launcher")
    second = start_operator(*flags)
    failed = eventually("the end", lambda: world.condition("Failed"))
    assert (failed["status"], failed["reason"]) == ("True", "LauncherDeleted")
    assert world.launcher() is None
    second.stop(signal.SIGKILL)


@pytest.mark.usefixtures("unwatched")
@pytest.mark.parametrize("kind", ["MPIJob", "Namespace"])
def test_nothing_holds_back_a_deletion_while_no_operator_runs(
    start_operator: Start, bare_world: World, kind: str
) -> None:
    world = bare_world
    operator = start_operator(f"--namespace={world.namespace}", "--no-leader-election")
    running(world)
    operator.stop(signal.SIGKILL)
    objects = [each for name in ("MPIJob", "Job", "Pod", "Service", "ConfigMap", "Secret") for each in world.all(name)]
    assert len(objects) > 6
    # Kubernetes deletes all of them by itself: no finalizer waits for an operator. (Nothing collects garbage here.)
    assert [each["metadata"]["name"] for each in objects if each["metadata"].get("finalizers")] == []
    if kind == "MPIJob":
        world.delete("MPIJob", "job")
        assert world.get("MPIJob", "job") is None


def test_a_secret_that_is_deleted_comes_back_with_the_same_keys(world: World) -> None:
    world.submit()
    world.started()
    world.run_workers(ready=True)
    before = world.get("Secret", "job-ssh")
    assert before
    world.delete("Secret", "job-ssh")
    # The next worker has a node, and its kubelet waits for the Secret.
    world.delete("Pod", "job-worker-1")
    eventually("a worker", lambda: len(world.workers()) == 2)
    target = {"apiVersion": "v1", "kind": "Node", "name": "some-node"}
    binding = {"metadata": {"name": "job-worker-1"}, "target": target}
    world.client.do("POST", world.path("Pod", "job-worker-1", "binding"), binding)
    after = eventually("the Secret", lambda: world.get("Secret", "job-ssh"))
    assert after["data"] == before["data"]
    world.said("SecretDeleted")


def test_workers_with_the_keys_of_a_deleted_secret_are_replaced_when_no_launcher_needs_them() -> None:
    made = planned()
    created = "2026-01-02T03:00:00Z"
    workers = [replace(each, meta=replace(each.meta, created=created)) for each in (pod(made, 0), pod(made, 1))]
    there = seen(made, *workers)
    assert with_other_keys(there, "") == ()
    assert with_other_keys(there, created) == ()
    assert with_other_keys(there, "2026-01-02T03:00:05Z") == ()  # clocks of several API servers
    assert with_other_keys(there, "2026-01-02T03:01:00Z") == tuple(workers)
    template = made.launcher["spec"]["template"]
    status = {"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}
    launcher = pod_view({**stored({**template, "metadata": {**template["metadata"], "name": "l"}}), "status": status})
    assert launcher
    running_ = replace(there, launcher_pods=(launcher,))
    assert with_other_keys(running_, "2026-01-02T03:01:00Z") == ()
    ended = replace(there, launcher_pods=(replace(launcher, phase="Failed"),))
    assert with_other_keys(ended, "2026-01-02T03:01:00Z") == tuple(workers)


def test_a_lost_launcher_ends_its_job_and_nothing_is_made() -> None:
    made = planned()
    there = replace(seen(made, pod(made, 0), pod(made, 1), launcher=False), lost_launcher=True)
    assert todo(made, there) == []
    ended = next_status(made.job, there, NOW)
    assert ended.status["state"] == "Failed"
    assert ended.events[-1].reason == "LauncherDeleted"


def test_the_events_of_the_latest_change_can_be_made_from_the_status_alone() -> None:
    """For the operator that finds a status whose writer died before it sent the events."""
    made = planned()
    first = next_status(made.job, seen(made, pod(made, 0), pod(made, 1)), NOW)
    assert latest_events(made.job, first.status) == first.events
    later = "2026-01-02T03:05:05Z"
    ended = seen(made, pod(made, 0), pod(made, 1), **first.status)
    assert ended.launcher
    ended = replace(ended, launcher=replace(ended.launcher, outcome="Failed", reason="BackoffLimitExceeded"))
    second = next_status(made.job, ended, later)
    assert [each.reason for each in latest_events(made.job, second.status)] == [each.reason for each in second.events]
    assert latest_events(made.job, {}) == ()


def test_a_wall_clock_that_jumps_does_not_end_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    wall, steady = 60.0, 1000.0
    monkeypatch.setattr(deadline, "seconds_since", lambda _: wall)
    monkeypatch.setattr(time, "clock_gettime", lambda _: steady)
    stopwatch = Stopwatch()
    assert stopwatch.since(NOW) == 60.0
    wall, steady = 3670.0, 1010.0
    assert stopwatch.since(NOW) == 70.0
    wall, steady = -3600.0, 1020.0
    assert stopwatch.since(NOW) == 80.0
    # A time that is seen for the first time is as old as the wall clock says, and never in the future.
    assert stopwatch.since("2026-01-02T09:00:00Z") == 0.0


@pytest.mark.usefixtures("unwatched")
def test_a_job_that_another_operator_failed_without_a_time_does_not_run_again(
    start_operator: Start, bare_world: World
) -> None:
    world = bare_world
    world.submit()
    failed = {"type": "Failed", "status": "True", "reason": "theirs", "message": "theirs"}
    world.patch("MPIJob", "job", {"status": {"conditions": [failed]}}, "status")
    operator = start_operator(f"--namespace={world.namespace}", "--no-leader-election")
    eventually("a time", lambda: world.status().get("completionTime"))
    holds(lambda: world.launcher() is None and not world.workers(), 1)
    operator.stop(signal.SIGKILL)
