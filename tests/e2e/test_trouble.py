"""Faults of real clusters: late workers, wrong images, full quotas, suspended jobs, a dying operator."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.e2e.jobs import PI, held, mpijob, one_on_each, pi, ranks

if TYPE_CHECKING:
    from collections.abc import Callable

    from cluster.fixtures import Cluster

    from tests.e2e.conftest import Operator
    from tests.e2e.jobs import Jobs, Object

LATE = 30  # seconds


def _late(job: Object, image: str) -> Object:
    """The job with a worker 1 that starts later than worker 0."""
    script = f"case $(hostname) in *-worker-1) sleep {LATE};; esac"
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["initContainers"] = [
        {"name": "late", "image": image, "imagePullPolicy": "IfNotPresent", "command": ["sh", "-c", script]}]
    return job


def test_a_late_worker_restarts_no_launcher(jobs: Jobs, loaded: Callable[[str], str]) -> None:
    image = loaded("openmpi")
    name = jobs.submit(_late(pi("late", image, runPolicy={"backoffLimit": 0}), image))
    jobs.until(name, "a launcher that waits", lambda: jobs.launcher_starts(name) == 1)
    assert jobs.end(name) == "Succeeded", jobs.report(name)
    assert jobs.launcher_starts(name) == 1
    assert ranks(jobs.output(name)) == one_on_each(name, 2)


def test_a_late_worker_holds_back_a_foreign_launcher(jobs: Jobs, foreign: Callable[[str], str]) -> None:
    image = foreign("guide")
    job = mpijob("held", image, ["mpirun", "-n", "2", "hostname"], sshAuthMountPath="/home/user/.ssh",
                 runPolicy={"backoffLimit": 0})
    name = jobs.submit(_late(job, image))
    jobs.until(name, "its first worker", lambda: any(
        each["status"]["phase"] == "Running" for each in jobs.pods(name, "worker")))
    jobs.until(name, "what its launcher waits for", lambda: "waiting for held-worker-1" in jobs.output(name))
    assert jobs.end(name) == "Succeeded", jobs.report(name)
    assert jobs.launcher_starts(name) == 1
    # On a busy machine Open MPI adds a warning (setpgid) to the log.
    printed = [line for line in jobs.output(name).splitlines() if line.startswith("held-")]
    assert sorted(printed) == ["held-worker-0", "held-worker-1"]


def test_a_wrong_image_is_named_and_costs_no_attempt(jobs: Jobs, loaded: Callable[[str], str]) -> None:
    job = pi("typo", loaded("openmpi"), runPolicy={"backoffLimit": 0})
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    worker["image"] = "localhost:1/no/such-image:1"
    name = jobs.submit(job)
    jobs.until(name, "the image's name in its status",
               lambda: "no/such-image" in json.dumps(jobs.get(name).get("status", {})))
    jobs.until(name, "the reason in the launcher's log", lambda: "worker-0" in jobs.output(name)
               and "pull" in jobs.output(name).lower())
    assert not jobs.condition(name, "Failed")
    assert jobs.launcher_starts(name) == 1


def test_a_full_quota_is_an_event_and_the_job_waits(jobs: Jobs, loaded: Callable[[str], str], cluster: Cluster) -> None:
    quota = ("quota", "full", "-n", jobs.namespace)
    cluster.kubectl("create", *quota, "--hard=pods=1")
    try:
        name = jobs.submit(pi("quota", loaded("openmpi"), runPolicy={"backoffLimit": 0}))
        jobs.until(name, "the quota in an event", lambda: any("exceeded quota" in each for each in jobs.events(name)))
        assert not jobs.condition(name, "Failed")
    finally:
        cluster.kubectl("delete", *quota)
    assert jobs.end(name) == "Succeeded", jobs.report(name)
    assert ranks(jobs.output(name)) == one_on_each(name, 2)


def test_a_suspended_job_has_no_pods_and_resumes(jobs: Jobs, loaded: Callable[[str], str]) -> None:
    name = jobs.submit(mpijob("pause", loaded("openmpi"), held(["mpirun", "-n", "2", "python3", "-c", PI])))
    jobs.until(name, "running", lambda: jobs.condition(name, "Running").get("status") == "True")
    jobs.patch(name, {"spec": {"runPolicy": {"suspend": True}}})
    jobs.until(name, "the condition Suspended", lambda: jobs.condition(name, "Suspended").get("status") == "True")
    jobs.until(name, "no pods", lambda: not jobs.pods(name))
    jobs.patch(name, {"spec": {"runPolicy": {"suspend": False}}})
    jobs.until(name, "running again",
               lambda: [pod["status"]["phase"] for pod in jobs.pods(name, "launcher")] == ["Running"])
    jobs.start_held(name)
    assert jobs.end(name) == "Succeeded", jobs.report(name)
    assert jobs.condition(name, "Suspended")["status"] == "False"
    assert ranks(jobs.output(name)) == one_on_each(name, 2)


def test_an_operator_that_dies_in_the_middle_changes_nothing(
        jobs: Jobs, loaded: Callable[[str], str], operator: Operator) -> None:
    image = loaded("openmpi")
    name = jobs.submit(_late(pi("survives", image, runPolicy={"backoffLimit": 0}), image))
    jobs.until(name, "a launcher that waits", lambda: jobs.launcher_starts(name) == 1)
    operator.kill()
    operator.start()
    assert jobs.end(name) == "Succeeded", jobs.report(name)
    assert jobs.launcher_starts(name) == 1
    assert len(jobs.pods(name, "worker")) == 2
    assert ranks(jobs.output(name)) == one_on_each(name, 2)


def test_a_job_that_ends_while_no_operator_runs_is_not_run_again(
        jobs: Jobs, loaded: Callable[[str], str], operator: Operator) -> None:
    job = mpijob("alone", loaded("openmpi"), held(["mpirun", "-n", "2", "python3", "-c", PI]),
                 runPolicy={"ttlSecondsAfterFinished": 1})
    name = jobs.submit(job)
    jobs.until(name, "running", lambda: jobs.condition(name, "Running").get("status") == "True")
    operator.kill()
    try:
        jobs.start_held(name)
        jobs.until(name, "the launcher's end", lambda: jobs.pods(name, "launcher")[0]["status"]["phase"] == "Succeeded")
        assert jobs.output(name).count("rank ") == 2
    finally:
        operator.start()
    assert jobs.end(name) == "Succeeded", jobs.report(name)
    jobs.until(name, "the launcher's Job removed by its time to live", lambda: not jobs.pods(name, "launcher"))
    assert "MPIJobSucceeded" in " ".join(jobs.events(name))
