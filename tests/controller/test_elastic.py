"""Workers that are added, removed and die, in elastic jobs and in others."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.controller.dead_workers import Losses, dead, no_longer_evidence
from mpiboot.controller.job_state import RefreshMarks
from mpiboot.controller.launcher_news import news
from mpiboot.controller.observe import Observed
from mpiboot.job.elastic import enough_workers
from mpiboot.job.plan.plan import Plan, plan
from mpiboot.job.plan.ssh_material import SshMaterial
from mpiboot.job.read.manifest import Manifest
from mpiboot.job.read.read import read
from mpiboot.kube.job_projection import job_view
from mpiboot.kube.pod_projection import pod_view
from mpiboot.kube.projections import mpi_job_view
from tests.controller.conftest import eventually, holds, mpi_job

if TYPE_CHECKING:
    from mpiboot.kube.pod_projection import PodView
    from tests.controller.conftest import World

HOROVODRUN = ["horovodrun", "-np", "2", "--min-np", "1", "--max-np", "3",
              "--host-discovery-script", "/etc/mpi/discover_hosts.sh", "python", "train.py"]  # fmt: skip
READY: dict[str, Any] = {"conditions": [{"type": "Ready", "status": "True"}]}


def job_of(workers: int = 2, *, elastic: bool = True) -> dict[str, Any]:
    made = mpi_job(workers=workers)
    replicas = made["spec"]["mpiReplicaSpecs"]
    if elastic:
        replicas["Launcher"] = copy.deepcopy(replicas["Launcher"])  # both roles share a template
        replicas["Launcher"]["template"]["spec"]["containers"][0]["command"] = HOROVODRUN
    return made


def stored(manifest: dict[str, Any], **status: Any) -> dict[str, Any]:  # noqa: ANN401
    metadata = {**manifest["metadata"], "namespace": "default", "uid": f"uid-{manifest['metadata']['name']}"}
    return {**manifest, "metadata": {**metadata, "resourceVersion": "1"}, "status": status}


def planned(*, elastic: bool = True) -> Plan:
    manifest = Manifest(stored(job_of(3, elastic=elastic)))
    return plan(read(manifest).job, SshMaterial("p", "ssh-x c", "h", "ssh-x h", "t"))


def pod(made: Plan, index: int, phase: str = "Running", **status: Any) -> PodView:  # noqa: ANN401
    found = pod_view(stored(dict(made.workers[index]), phase=phase, **status))
    assert found
    return found


def launcher_pod(made: Plan, **state: Any) -> PodView:  # noqa: ANN401
    template = made.launcher["spec"]["template"]
    metadata = {**template["metadata"], "name": "job-launcher-x"}
    containers = [{"name": "main", "restartCount": state.pop("restarts", 0), "state": state}]
    manifest = {"metadata": metadata, "spec": template["spec"]}
    found = pod_view(stored(manifest, phase="Running", containerStatuses=containers))
    assert found
    return found


def seen(made: Plan, *workers: PodView, launchers: tuple[PodView, ...] = (), failed: int = 0) -> Observed:
    launcher = job_view(stored(dict(made.launcher), failed=failed))
    assert launcher
    return Observed(mpi_job_view(stored(job_of(3))), launcher, launchers, workers)


def test_an_elastic_job_gets_a_new_worker_at_once_and_later_after_each_further_death() -> None:
    made, losses = planned(), Losses()
    there = seen(made, pod(made, 0, **READY), pod(made, 1, "Failed"), pod(made, 2, **READY))
    assert [each.index for each in dead(made.job, there, losses, 1000.0).replace] == [1]
    losses.replaced(1, 1000.0)
    lost = dead(made.job, there, losses, 1000.25)
    assert (lost.replace, lost.again) == ((), 0.75)
    losses.replaced(1, 1001.0)
    assert dead(made.job, there, losses, 1001.0).again == 2.0
    assert dead(made.job, there, losses, 1400.0).replace  # that was long ago


def test_a_job_whose_launcher_restarts_its_command_gets_a_new_worker_at_once() -> None:
    made = planned(elastic=False)
    there = seen(made, pod(made, 0, **READY), pod(made, 1, "Failed"), pod(made, 2, **READY))
    job = replace(made.job, annotations={"mpiboot.dev/restarts": "3"})
    assert [each.index for each in dead(job, there, Losses(), 1000.0, in_place=True).replace] == [1]
    assert dead(job, there, Losses(), 1000.0).replace == ()
    assert dead(made.job, there, Losses(), 1000.0, in_place=True).replace == ()


def test_other_jobs_keep_dead_workers_until_the_attempt_has_ended() -> None:
    made = planned(elastic=False)
    ended = {"finishedAt": "2026-01-01T10:00:00Z", "exitCode": 137, "reason": "OOMKilled"}
    lost = pod(made, 1, "Failed", containerStatuses=[{"name": "main", "state": {"terminated": ended}}])
    before = launcher_pod(made, running={"startedAt": "2026-01-01T09:00:00Z"})
    assert not no_longer_evidence(seen(made, lost, launchers=(before,)), lost)
    waits = launcher_pod(made, waiting={"reason": "CrashLoopBackOff"}, restarts=1)
    assert no_longer_evidence(seen(made, lost, launchers=(waits,)), lost)
    after = launcher_pod(made, running={"startedAt": "2026-01-01T11:00:00Z"}, restarts=1)
    assert no_longer_evidence(seen(made, lost, launchers=(after,)), lost)
    assert no_longer_evidence(seen(made, lost, failed=1), lost)
    assert not no_longer_evidence(seen(made, lost), lost)  # nothing was tried yet
    last = seen(made, lost, failed=1)
    assert last.launcher
    over = replace(last, launcher=replace(last.launcher, backoff_limit=0))
    assert not no_longer_evidence(over, lost)


def test_the_annotation_for_the_kubelet_changes_several_times() -> None:
    refresh_marks = RefreshMarks()
    assert (refresh_marks.mark("", 0.0), refresh_marks.wait(0.0)) == ("", 0.0)
    marks = [refresh_marks.mark("one", now) for now in (0.0, 0.4, 0.5, 1.4, 3.0, 6.0, 12.0, 99.0)]
    assert marks == ["one.1", "one.1", "one.2", "one.3", "one.4", "one.5", "one.6", "one.6"]
    assert refresh_marks.wait(99.0) == 0.0
    assert refresh_marks.mark("two", 99.0) == "two.1"
    assert 0 < refresh_marks.wait(99.0) < 1


def test_an_elastic_launcher_begins_with_as_many_workers_as_it_needs() -> None:
    assert enough_workers(planned().job) == 1
    assert enough_workers(planned(elastic=False).job) == 3


def test_only_workers_whose_ssh_answers_are_listed() -> None:
    made = planned()
    there = seen(made, pod(made, 0, **READY), pod(made, 1), pod(made, 2, "Pending"))
    script = news(made, there, "").data["discover_hosts.sh"]
    assert [line for line in script.splitlines() if line.startswith("echo job-")] == [
        "echo job-worker-0.job.default.svc"
    ]


def test_workers_without_a_name_in_dns_are_not_listed() -> None:
    made = planned()
    there = replace(seen(made, pod(made, 0, **READY), pod(made, 1, **READY)), unnamed=frozenset({"job-worker-0"}))
    assert "job-worker-1." in news(made, there, "").data["discover_hosts.sh"]
    assert "job-worker-0." not in news(made, there, "").data["discover_hosts.sh"]


def test_a_running_job_grows_and_shrinks_and_its_launcher_stays(world: World) -> None:
    world.create("MPIJob", job_of())
    launcher = world.started()
    world.run_workers(ready=True)
    world.phase(world.launcher_pod(), "Running")
    eventually("the condition", lambda: world.condition("Running").get("status") == "True")
    since = world.condition("Running")
    for count in (3, 1, 2):
        world.patch("MPIJob", "job", {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": count}}}})
        eventually("workers", lambda count=count: len(world.workers()) == count)  # type: ignore[misc]
        assert [each["metadata"]["name"] for each in world.workers()] == [f"job-worker-{i}" for i in range(count)]
        world.run_workers(ready=True)
        listed = [f"echo job-worker-{i}.job.{world.namespace}.svc" for i in range(count)]
        eventually("the script", lambda listed=listed: hosts(world) == listed)  # type: ignore[misc]
        pod, = (each for each in world.all("Pod") if each["metadata"]["name"].startswith("job-launcher"))
        assert pod["metadata"]["annotations"].get("mpiboot.dev/discovery")
    now = world.launcher()
    assert now
    assert now["metadata"]["uid"] == launcher["metadata"]["uid"]
    assert world.condition("Running") == since
    assert world.events("ChangeIgnored") == []


@pytest.mark.parametrize("elastic", [True, False], ids=["elastic", "fixed"])
def test_a_dead_worker_is_an_event_and_is_replaced_only_in_an_elastic_job(world: World, *, elastic: bool) -> None:
    world.create("MPIJob", job_of(elastic=elastic))
    world.started()
    world.run_workers(ready=True)
    launcher = world.launcher_pod()
    world.phase(launcher, "Running", containerStatuses=[running("2026-01-01T09:00:00Z")])
    before = world.workers()[1]["metadata"]["uid"]
    world.phase(world.workers()[1], "Failed", reason="Evicted", message="low on memory")
    told = world.said("WorkerEnded")["message"]
    assert told.startswith("worker-1 ended: Evicted: low on memory; ")

    def uid() -> str:
        return "".join(each["metadata"]["uid"] for each in world.workers() if each["metadata"]["name"].endswith("-1"))

    assert world.said("MPIJobEvicted")["message"] == "1/2 workers are evicted"
    if elastic:
        eventually("a new worker", lambda: uid() not in ("", before))
        return
    holds(lambda: uid() == before, 2)
    # The launcher's first attempt ends, and another one is allowed.
    world.phase(launcher, "Failed")
    world.patch("Job", "job-launcher", {"status": {"failed": 1}}, "status")
    eventually("a new worker", lambda: uid() not in ("", before))


def hosts(world: World) -> list[str]:
    config = world.get("ConfigMap", "job-config")
    assert config
    return [line for line in config["data"]["discover_hosts.sh"].splitlines() if line.startswith("echo job-")]


def running(since: str) -> dict[str, Any]:
    state = {"running": {"startedAt": since}}
    return {"name": "main", "image": "x", "imageID": "", "ready": True, "restartCount": 0, "state": state}
