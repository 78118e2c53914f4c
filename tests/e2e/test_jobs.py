"""Jobs of every runtime, size and user run on the right hosts: one rank on each worker, none on the launcher."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.job import mpi
from tests.e2e.jobs import everywhere, mpijob, one_on_each, pi, ranks

if TYPE_CHECKING:
    from collections.abc import Callable

    from cluster.fixtures import Cluster

    from tests.e2e.jobs import Jobs

RUNTIMES = {runtime.image: runtime.name for runtime in mpi.RUNTIMES}


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_pi_on_two_workers(jobs: Jobs, loaded: Callable[[str], str], runtime: str) -> None:
    job = pi(runtime, loaded(runtime), mpiImplementation=RUNTIMES[runtime], sshAuthMountPath="/home/mpiuser/.ssh")
    assert ranks(jobs.run(job)) == one_on_each(runtime, 2)
    assert jobs.launcher_starts(runtime) == 1


def test_pi_on_eight_workers(jobs: Jobs, loaded: Callable[[str], str]) -> None:
    assert ranks(jobs.run(pi("eight", loaded("openmpi"), 8))) == one_on_each("eight", 8)
    assert jobs.launcher_starts("eight") == 1


@pytest.mark.parametrize(("name", "user"), [("root", {"runAsUser": 0}), ("thousand", {"runAsUser": 1000}),
                                            ("any", {"runAsUser": 1000680000, "runAsGroup": 0})])
def test_a_job_runs_as_any_user(jobs: Jobs, loaded: Callable[[str], str], name: str, user: dict[str, int]) -> None:
    job = everywhere(pi(name, loaded("openmpi")), securityContext=user)
    assert ranks(jobs.run(job)) == one_on_each(name, 2)


def test_a_launcher_that_is_a_worker_too_has_its_ranks(jobs: Jobs, loaded: Callable[[str], str]) -> None:
    job = pi("both", loaded("openmpi"), 2, runLauncherAsWorker=True)
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["command"][2] = "3"
    found = ranks(jobs.run(job))
    launcher = [host for host in found if "launcher" in host]
    assert len(launcher) == 1
    assert found == {**one_on_each("both", 2), launcher[0]: 1}


SHOW_ENVIRONMENT = 'env; [ -e /var/run/secrets/kubernetes.io ] && echo a token; echo on $(hostname)'


def test_a_worker_that_only_serves_mounts_nothing_and_keeps_its_keys(jobs: Jobs, loaded: Callable[[str], str]) -> None:
    name = "bare"
    printed = jobs.run(mpijob(name, loaded("openmpi"), ["mpirun", "-n", "2", "sh", "-c", SHOW_ENVIRONMENT]))
    lines = printed.splitlines()
    assert {f"on {name}-worker-{index}" for index in (0, 1)} <= set(lines)
    assert lines.count("K_MPI_JOB_ROLE=worker") == 2
    assert "a token" not in lines
    for secret in ("MPIBOOT_HOST_KEY", "MPIBOOT_AUTHORIZED_KEYS", "PRIVATE KEY"):
        assert secret not in printed
    assert [pod["spec"].get("volumes", []) for pod in jobs.pods(name, "worker")] == [[], []]


def test_a_worker_that_names_its_account_has_that_accounts_token(jobs: Jobs, loaded: Callable[[str], str]) -> None:
    job = mpijob("account", loaded("openmpi"), ["mpirun", "-n", "2", "sh", "-c", SHOW_ENVIRONMENT])
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["serviceAccountName"] = "default"
    printed = jobs.run(job).splitlines()
    assert printed.count("a token") == 2
    assert {f"on account-worker-{index}" for index in (0, 1)} <= set(printed)


def test_two_workers_share_the_network_of_their_node(jobs: Jobs, loaded: Callable[[str], str]) -> None:
    """One of them finds port 2222 in use, and logs on which port it serves instead."""
    job = mpijob("shared", loaded("openmpi"), ["mpirun", "-n", "2", "sh", "-c", "echo on worker $MPIBOOT_INDEX"])
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["hostNetwork"] = True
    printed = jobs.run(job)
    assert sorted(line for line in printed.splitlines() if line.startswith("on ")) == ["on worker 0", "on worker 1"]
    assert jobs.launcher_starts("shared") == 1
    assert len({pod["status"]["podIP"] for pod in jobs.pods("shared", "worker")}) == 1
    assert "is in use already (host network?); SSH listens on" in jobs.report("shared")


def test_a_worker_takes_as_many_ranks_as_it_has_slots(jobs: Jobs, loaded: Callable[[str], str]) -> None:
    job = pi("slots", loaded("openmpi"), 2, slotsPerWorker=2)
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["command"][2] = "4"
    assert ranks(jobs.run(job)) == {"slots-worker-0": 2, "slots-worker-1": 2}


def test_a_foreign_image_runs_unchanged(jobs: Jobs, foreign: Callable[[str], str]) -> None:
    command = ["mpirun", "-n", "2", "sh", "-c", "echo on $(hostname)"]
    job = mpijob("foreign", foreign("peers"), command, sshAuthMountPath="/home/mpiuser/.ssh")
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    worker["command"] = ["/usr/sbin/sshd", "-De", "-f", "/home/mpiuser/.sshd_config"]
    printed = jobs.run(everywhere(job, securityContext={"runAsUser": 1000}))
    assert sorted(line for line in printed.splitlines() if line.startswith("on ")) == [
        "on foreign-worker-0", "on foreign-worker-1"]
    assert jobs.launcher_starts("foreign") == 1


@pytest.mark.parametrize("owner", ["1000:0", "0:0"])
def test_an_image_built_from_ours_runs_under_any_name(
        jobs: Jobs, derived: Callable[..., str], owner: str) -> None:
    """Neither its name nor the manifest shows that it is built from ours, or the user that it runs as."""
    user = owner.partition(":")[0]
    # Open MPI runs as root only if these variables allow it.
    allowed = {"env": [{"name": f"OMPI_ALLOW_RUN_AS_ROOT{more}", "value": "1"} for more in ("", "_CONFIRM")]}
    job = mpijob(f"derived-{user}", derived(owner), ["mpirun", "-n", "2", "where"])
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0].update(allowed)
    printed = jobs.run(job)
    # Open MPI may warn of setpgid: the child has called exec already, and nothing is wrong.
    ranks = [line for line in printed.splitlines() if "setpgid" not in line and not line.startswith("mpiboot: ")]
    assert "mpiboot: 2 of 2 workers ready after " in printed
    assert sorted(ranks) == [f"on derived-{user}-worker-{index} as {user}" for index in (0, 1)]
    assert jobs.launcher_starts(f"derived-{user}") == 1


def test_the_computing_centres_guide_works_without_a_failing_launcher(
        jobs: Jobs, foreign: Callable[[str], str]) -> None:
    job = mpijob("guide", foreign("guide"), ["mpirun"], sshAuthMountPath="/home/user/.ssh",
                 runPolicy={"cleanPodPolicy": "All", "ttlSecondsAfterFinished": 60})
    launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    launcher["args"] = ["-n", "2", "sh", "-c", "echo on $(hostname)"]
    name = jobs.submit(everywhere(job, securityContext={"runAsUser": 1000}))
    assert jobs.end(name) == "Succeeded", jobs.report(name)
    assert sorted(line for line in jobs.output(name).splitlines() if line.startswith("on ")) == [
        "on guide-worker-0", "on guide-worker-1"]
    assert jobs.launcher_starts(name) == 1
    jobs.until(name, "workers gone by cleanPodPolicy All", lambda: not jobs.pods(name, "worker"))


# With OnFailure Kubernetes restarts the program, and deletes the pod after the last attempt.
@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_a_failing_program_fails_the_job_with_its_exit_code(
        jobs: Jobs, loaded: Callable[[str], str], policy: str) -> None:
    job = mpijob(f"fails-{policy.lower()}", loaded("openmpi"), ["sh", "-c", "exit 7"], runPolicy={"backoffLimit": 0})
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = policy
    name = jobs.submit(job)
    assert jobs.end(name) == "Failed"
    failed = jobs.condition(name, "Failed")
    assert failed["reason"] == "BackoffLimitExceeded/Error", jobs.report(name)
    assert "exit code 7" in failed["message"], jobs.report(name)


@pytest.fixture
def restricted(cluster: Cluster, space: str) -> Any:  # noqa: ANN401 (a generator)
    """The operator's namespace, which enforces the strictest Pod Security Standard during the test."""
    label = "pod-security.kubernetes.io/enforce"
    cluster.kubectl("label", "namespace", space, f"{label}=restricted")
    yield
    cluster.kubectl("label", "namespace", space, f"{label}-")


@pytest.mark.usefixtures("restricted")
def test_our_images_run_in_a_restricted_namespace(jobs: Jobs, loaded: Callable[[str], str]) -> None:
    job = everywhere(pi("restricted", loaded("openmpi")), securityContext={
        "runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}})
    for replica in job["spec"]["mpiReplicaSpecs"].values():
        pod = replica["template"]["spec"]
        pod["volumes"] = [{"name": "scratch", "emptyDir": {}}]  # MPI runtimes keep their sockets under /tmp
        pod["containers"][0].update(volumeMounts=[{"name": "scratch", "mountPath": "/tmp"}], securityContext={
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}})
    assert ranks(jobs.run(job)) == one_on_each("restricted", 2)
