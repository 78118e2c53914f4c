"""The pure parts: from the observed objects to actions, status and events. No cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.controller.decide import Create, Delete, Patch, after_the_end, decide, made_from, marked
from mpiboot.controller.launcher_news import news
from mpiboot.controller.observe import Observed
from mpiboot.controller.preflight import version_fault
from mpiboot.controller.status import next_status
from mpiboot.job.plan import host_lists
from mpiboot.job.plan.plan import Plan, plan
from mpiboot.job.plan.ssh_material import SshMaterial
from mpiboot.job.read.manifest import Manifest
from mpiboot.job.read.read import read
from mpiboot.kube.conditions import Conditions, is_finished
from mpiboot.kube.job_projection import job_view
from mpiboot.kube.pod_projection import pod_view
from mpiboot.kube.projections import config_map_view, mpi_job_view, service_view
from tests.controller.conftest import mpi_job

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.kube.pod_projection import PodView

NOW = "2026-01-02T03:04:05Z"


def stored(manifest: Mapping[str, Any], version: int = 1) -> dict[str, Any]:
    """The object as an API server would return it."""
    name = manifest["metadata"]["name"]
    return {**manifest, "metadata": {**manifest["metadata"], "uid": f"uid-{name}", "resourceVersion": str(version)}}


def planned(**changes: Any) -> Plan:  # noqa: ANN401
    manifest = stored(mpi_job(**changes))
    manifest["metadata"]["namespace"] = "default"
    return plan(read(Manifest(manifest)).job, SshMaterial("p", "ssh-x c", "h", "ssh-x h", "t"))


def pod(made: Plan, index: int, phase: str = "Running", **status: Any) -> PodView:  # noqa: ANN401
    found = pod_view({**stored(made.workers[index]), "status": {"phase": phase, **status}})
    assert found
    return found


def seen(made: Plan, *workers: PodView, launcher: bool = True, **status: Any) -> Observed:  # noqa: ANN401
    """All objects of a job, with the given workers."""
    manifest = stored(mpi_job(made.job.name))
    manifest["metadata"]["namespace"] = "default"
    if status:
        manifest["status"] = status
    config = {**made.config_map, "data": news(made, Observed(mpi_job_view(manifest), workers=workers), "").data}
    return Observed(
        mpi_job_view(manifest),
        job_view(stored(made.launcher)) if launcher else None,
        (),
        workers,
        service_view(stored(made.service)),
        config_map_view(stored(config)),
    )


def todo(made: Plan, there: Observed, *, has_secret: bool = True) -> list[list[str]]:
    if is_finished(there.view.raw.get("status") or {}):
        stages = after_the_end(made.job, there)
    else:
        stages = decide(made, there, news(made, there, ""), has_secret=has_secret)
    return [[str(action) for action in stage.actions] for stage in stages]


def test_what_pods_mount_comes_before_them() -> None:
    made = planned()
    nothing = Observed(seen(made).view)
    assert todo(made, nothing, has_secret=False) == [
        ["create Service job", "create ConfigMap job-config", "create Secret job-ssh"],
        ["create Job job-launcher", "create Pod job-worker-0", "create Pod job-worker-1"],
    ]


def test_a_complete_job_needs_no_action() -> None:
    made = planned()
    assert todo(made, seen(made, pod(made, 0), pod(made, 1))) == []


def test_a_worker_that_is_being_deleted_is_replaced_only_afterwards() -> None:
    made = planned()
    leaving = pod(made, 1)
    leaving = replace(leaving, meta=replace(leaving.meta, deleting=True))
    assert todo(made, seen(made, pod(made, 0), leaving)) == []


def test_a_dead_worker_is_kept() -> None:
    made = planned()
    assert todo(made, seen(made, pod(made, 0), pod(made, 1, "Failed"))) == []


def test_the_workers_with_the_highest_indexes_are_deleted() -> None:
    four, two = planned(workers=4), planned(workers=2)
    there = seen(two, *(pod(four, index) for index in range(4)))
    assert todo(two, there) == [["delete Pod job-worker-3", "delete Pod job-worker-2"]]


def test_an_outcome_is_in_the_status_before_anything_is_deleted() -> None:
    made = planned()
    there = seen(made, pod(made, 0), pod(made, 1))
    assert there.launcher
    ended = replace(there, launcher=replace(there.launcher, outcome="Complete"))
    assert todo(made, ended) == []
    status = next_status(made.job, ended, NOW).status
    written = replace(ended, view=mpi_job_view({**ended.view.raw, "status": status}))
    assert todo(made, written) == [["delete Pod job-worker-0", "delete Pod job-worker-1"]]


def test_a_failure_that_another_operator_wrote_without_a_time_is_final() -> None:
    made = planned()
    there = seen(made, pod(made, 0), launcher=False)
    failed = {"conditions": [{"type": "Failed", "status": "True", "reason": "Evicted"}], "state": "Failed"}
    there = replace(there, view=mpi_job_view({**there.view.raw, "status": failed}))
    assert todo(made, there) == [["delete Pod job-worker-0"]]
    assert next_status(made.job, there, NOW).status["completionTime"] == NOW


@pytest.mark.parametrize("outcome", ["Succeeded", "Failed"])
def test_an_outcome_that_an_operator_of_v1alpha1_wrote_without_conditions_is_final(outcome: str) -> None:
    made = planned()
    there = seen(made, launcher=False)
    there = replace(there, view=mpi_job_view({**there.view.raw, "status": {"launcherStatus": outcome}}))
    assert todo(made, there) == []
    coming = next_status(made.job, there, NOW)
    assert [(each["type"], each["status"]) for each in coming.status["conditions"]] == [(outcome, "True")]
    assert (coming.status["launcherStatus"], coming.status["state"], coming.events) == (outcome, outcome, ())
    assert is_finished(coming.status)
    assert not is_finished({"launcherStatus": "Active"})
    # This operator writes it, too, between two attempts.
    assert not is_finished({"launcherStatus": "Failed", "conditions": [{"type": "Restarting", "status": "True"}]})


def test_a_suspended_job_makes_what_it_needs_but_no_worker() -> None:
    made = planned(policy={"suspend": True})
    nothing = Observed(seen(made).view)
    last = decide(made, nothing, news(made, nothing, ""), has_secret=False)[-1].actions
    assert [str(action) for action in last] == ["create Job job-launcher"]
    assert isinstance(last[0], Create)
    assert last[0].manifest["spec"]["suspend"] is True


def resting(made: Plan, *pods: PodView) -> Observed:
    there = seen(made)
    found = job_view(stored(marked(made.launcher)))
    assert found
    return replace(there, launcher=replace(found, suspended=True), launcher_pods=pods)


def test_a_suspended_launcher_is_replaced_only_for_fields_that_cannot_change() -> None:
    made = planned(policy={"suspend": True})
    workers = ["create Pod job-worker-0", "create Pod job-worker-1"]
    assert todo(planned(), resting(made)) == [["resume Job job-launcher", *workers]]
    for edit in ({"image": "another"}, {"policy": {"backoffLimit": 1}}):
        assert todo(planned(**edit), resting(made)) == [["delete Job job-launcher", *workers]]
    # Another operator made it, without the digest.
    assert todo(planned(image="another"), replace(seen(made), launcher=job_view(
        {**stored(made.launcher), "spec": {**made.launcher["spec"], "suspend": True}}
    ))) == [["resume Job job-launcher", *workers]]  # fmt: skip


def test_a_new_launcher_waits_until_the_pod_of_the_old_one_has_ended() -> None:
    made = planned(policy={"suspend": True})
    edited = planned(image="another")
    workers = ["create Pod job-worker-0", "create Pod job-worker-1"]
    assert todo(edited, resting(made, pod(made, 0))) == [workers]
    assert todo(edited, resting(made, pod(made, 0, "Failed"))) == [["delete Job job-launcher", *workers]]


def test_what_a_launcher_is_made_from_does_not_depend_on_keys() -> None:
    manifest = stored(mpi_job())
    manifest["metadata"]["namespace"] = "default"
    first, second = (
        plan(read(Manifest(manifest)).job, SshMaterial(x, f"ssh-x {x}", x, f"ssh-x {x}", x)) for x in ("a", "b")
    )
    assert made_from(first.launcher) == made_from(second.launcher)


def test_a_changed_service_is_corrected_by_a_patch() -> None:
    made = planned()
    there = seen(made, pod(made, 0), pod(made, 1))
    assert there.service
    other = replace(there, service=replace(there.service, digest="x"))
    stages = decide(made, other, news(made, other, ""), has_secret=True)
    assert isinstance(stages[0].actions[0], Patch)
    assert not any(isinstance(action, Delete) for stage in stages for action in stage.actions)


EDITS: list[dict[str, Any]] = [{"slotsPerWorker": 4}, {"mpiImplementation": "MPICH"}, {"runLauncherAsWorker": True}]


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: next(iter(edit)))
def test_edits_do_not_change_the_files_of_a_running_launcher(edit: dict[str, Any]) -> None:
    made, edited = planned(slotsPerWorker=2), planned(**{"slotsPerWorker": 2, **edit})
    there = seen(made, pod(made, 0), pod(made, 1))
    service = service_view(stored(edited.service))
    assert todo(edited, replace(there, service=service)) == []
    # Fields that may change still change.
    three = planned(workers=3, **edit)
    data = news(three, there, "").data
    assert data["hostfile"] == made.config_map["data"]["hostfile"] + "job-worker-2.job.default.svc slots=2\n"


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: next(iter(edit)))
def test_a_suspended_launcher_gets_the_files_of_the_edited_job(edit: dict[str, Any]) -> None:
    made, edited = planned(), planned(policy={"suspend": True}, **edit)
    there = seen(made)
    assert there.launcher
    there = replace(there, launcher=replace(there.launcher, suspended=True), service=service_view(stored(made.service)))
    assert news(edited, there, "").data["hostfile"] == edited.config_map["data"]["hostfile"]


@pytest.mark.parametrize("line", ["", "a slots=", "a:b", "a", "a slots=2 max_slots=4", "a:\n"])
def test_an_odd_hostfile_names_no_slots_and_no_runtime(line: str) -> None:
    assert host_lists.read_hostfile(line) is None


def test_a_second_reconciliation_sends_no_event() -> None:
    made = planned()
    there = seen(made, pod(made, 0), pod(made, 1))
    first = next_status(made.job, there, NOW)
    again = replace(there, view=mpi_job_view({**there.view.raw, "status": first.status}))
    second = next_status(made.job, again, "2027-01-01T00:00:00Z")
    assert [event.reason for event in first.events] == ["MPIJobCreated"]
    assert (second.status, second.events) == (first.status, ())


def test_nothing_changes_after_a_failure() -> None:
    made = planned()
    there = seen(made)
    assert there.launcher
    failed = replace(there, launcher=replace(there.launcher, outcome="Failed"))
    status = next_status(made.job, failed, NOW).status
    later = replace(there, view=mpi_job_view({**there.view.raw, "status": status}))
    assert next_status(made.job, later, "2027-01-01T00:00:00Z").status["conditions"] == status["conditions"]


def test_running_ends_with_the_job_and_keeps_its_reason() -> None:
    running = Conditions(()).having("Running", true=True, reason="MPIJobRunning", message="runs", now=NOW)
    later = "2026-01-02T04:00:00Z"
    ended = running.having("Succeeded", true=True, reason="MPIJobSucceeded", message="done", now=later)
    item = ended.get("Running")
    assert item
    assert (item["status"], item["reason"], item["lastTransitionTime"]) == ("False", "MPIJobRunning", later)
    assert ended.finished


def test_running_and_restarting_replace_each_other() -> None:
    conditions = Conditions(())
    for kind in ("Running", "Restarting", "Running"):
        conditions = conditions.having(kind, true=True, reason=f"MPIJob{kind}", message="", now=NOW)
    assert [item["type"] for item in conditions.items] == ["Running"]


def container(**state: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"containerStatuses": [{"name": "main", "restartCount": 0, "state": state}]}


@pytest.mark.parametrize(
    ("phase", "status", "why"),
    [
        ("Running", {}, ""),
        ("Pending", container(waiting={"reason": "ContainerCreating"}), ""),
        ("Pending", container(waiting={"reason": "ErrImagePull", "message": "a: not\n found"}),
         "cannot pull its image: not found"),
        ("Pending", container(waiting={"reason": "CreateContainerConfigError", "message": "no\n Secret"}),
         "CreateContainerConfigError: no Secret"),
        ("Failed", {"reason": "Evicted", "message": "low on memory"}, "Evicted: low on memory"),
        ("Failed", container(terminated={"exitCode": 3, "reason": "Error"}), "exit code 3"),
        ("Failed", container(terminated={"exitCode": 137, "reason": "OOMKilled"}), "OOMKilled, exit code 137"),
        ("Failed", container(terminated={"exitCode": 1, "message": "first\nlast"}), "exit code 1: last"),
        ("Failed", {}, "failed"),
        ("Running", container(terminated={"exitCode": 0, "reason": "Completed"}), ""),
    ],
)
def test_one_line_describes_what_is_wrong_with_a_pod(phase: str, status: dict[str, Any], why: str) -> None:
    assert pod(planned(), 0, phase, **status).why == why


@pytest.mark.parametrize(("minor", "works"), [("28", False), ("29", True), ("34+", True)])
def test_an_old_cluster_is_refused(minor: str, works: bool) -> None:
    fault = version_fault({"major": "1", "minor": minor, "gitVersion": f"v1.{minor}"})
    assert (fault is None) == works
