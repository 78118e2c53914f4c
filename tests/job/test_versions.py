# ruff: noqa: E501 - messages stand here as a user sees them
"""The older API versions: each one's defaults, its rules from both sides, and what the plan makes of them."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.job import elastic
from mpiboot.job.manifest import Manifest
from mpiboot.job.model import Job, Replica, RunPolicy
from mpiboot.job.plan import Plan, plan
from mpiboot.job.problems import ManifestError
from mpiboot.job.read import ReadJob, UnknownError, read
from mpiboot.job.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.job.material import SshMaterial

Object = dict[str, Any]
Changes = dict[str, Any]


@pytest.fixture(scope="session")
def old(manifest: Callable[[str], Manifest]) -> Callable[..., Manifest]:
    """A manifest of an older version by its name, changed at paths below spec; an Ellipsis takes a field away."""

    def make(version: str, changes: Changes | None = None) -> Manifest:
        data: Object = copy.deepcopy(dict(manifest(f"{version}.yaml").data))
        for path, value in (changes or {}).items():
            *above, last = path.split(".")
            if above and above[0] in ("Launcher", "Worker"):
                above = ["mpiReplicaSpecs", *above]
            inner: Any = data["spec"]
            for part in above:
                inner = inner[int(part)] if isinstance(inner, list) else inner.setdefault(part, {})
            if value is ...:
                del inner[last]
            else:
                inner[last] = value
        return Manifest(data)

    return make


@pytest.fixture(scope="session")
def read_old(old: Callable[..., Manifest]) -> Callable[..., ReadJob]:
    return lambda version, changes=None: read(old(version, changes))


@pytest.fixture(scope="session")
def plan_old(old: Callable[..., Manifest], material: SshMaterial) -> Callable[..., Plan]:
    def make(version: str, changes: Changes | None = None, image: str = "") -> Plan:
        settings = Settings(own_images=frozenset({image} if image else ()))
        return plan(read(old(version, changes)).job, material, settings)

    return make


def container(pod: Any) -> Object:  # noqa: ANN401
    found: Object = pod["spec"]["containers"][0]
    return found


def launcher_container(plan: Plan) -> Object:
    return container(plan.launcher["spec"]["template"])


def variables(container: Object) -> dict[str, Any]:
    return {item["name"]: item.get("value") for item in container["env"]}


def worker_of(found: ReadJob) -> Replica:
    assert found.job.worker
    return found.job.worker


def texts(found: ReadJob) -> list[str]:
    return [problem.text() for problem in found.warnings]


# v1alpha2


def test_the_documented_manifest_of_v1alpha2_runs_with_its_mistakes(manifest: Callable[[str], Manifest]) -> None:
    given = manifest("v1alpha2.yaml")
    found = read(given)
    specs = given.data["spec"]["mpiReplicaSpecs"]
    assert found.job == Job(
        name="tensorflow-mnist",
        namespace="default",
        api_version="kubeflow.org/v1alpha2",
        dialect="v1alpha2",
        slots_per_worker=2,
        ssh_auth_mount_path="/root/.ssh",
        launcher=Replica(1, specs["Launcher"]["template"], "Never"),
        worker=Replica(1, specs["Worker"]["template"], "Never"),
        run_policy=RunPolicy("Running", backoff_limit=6),
    )
    path = "spec.mpiReplicaSpecs"
    assert [problem.text("f.yaml") for problem in found.warnings] == [
        f"f.yaml:20: {path}.Launcher.template.spec.containers[0].resources.request: unknown field, kept; Kubernetes will ignore it; did you mean requests?",
        f"f.yaml:25: {path}.Worker.restartPolicy: must be one of Never, OnFailure, ExitCode, Always; is 'None': Never is used",
    ]


@pytest.mark.parametrize(("distribution", "implementation"), [
    ("OpenMPI", "OpenMPI"), ("IntelMPI", "Intel"), ("MPICH", "MPICH"),
])  # fmt: skip
def test_distributions_have_newer_names(
    read_old: Callable[..., ReadJob], distribution: str, implementation: str
) -> None:
    assert read_old("v1alpha2", {"mpiDistribution": distribution}).job.implementation == implementation


def test_the_run_policy_beats_the_top_level(read_old: Callable[..., ReadJob]) -> None:
    above = {"backoffLimit": 1, "activeDeadlineSeconds": 10, "cleanPodPolicy": "All"}
    assert read_old("v1alpha2", above).job.run_policy == RunPolicy(
        "All", backoff_limit=1, active_deadline_seconds=10
    )
    policy = {"backoffLimit": 2, "activeDeadlineSeconds": 20, "cleanPodPolicy": "None"}
    assert read_old("v1alpha2", {**above, "runPolicy": policy}).job.run_policy == RunPolicy(
        "None", backoff_limit=2, active_deadline_seconds=20
    )
    assert read_old("v1alpha2", {**above, "runPolicy": {"backoffLimit": 0}}).job.run_policy == RunPolicy(
        "All", backoff_limit=0, active_deadline_seconds=10
    )


REFUSED: dict[str, tuple[str, Changes, str]] = {
    "two launchers": ("v1alpha2", {"Launcher.replicas": 2}, "spec.mpiReplicaSpecs.Launcher.replicas: must be 1, is 2"),
    "no workers": ("v1alpha2", {"Worker.replicas": 0}, "spec.mpiReplicaSpecs.Worker.replicas: must be >= 1, is 0"),
    "no slots": ("v1alpha2", {"slotsPerWorker": 0}, "spec.slotsPerWorker: must be >= 1, is 0"),
    "the newer name of a distribution": (
        "v1alpha2", {"mpiDistribution": "Intel"},
        "spec.mpiDistribution: must be one of OpenMPI, IntelMPI, MPICH; is 'Intel'; did you mean IntelMPI?",
    ),
    "a policy": (
        "v1alpha2", {"cleanPodPolicy": "Some"}, "spec.cleanPodPolicy: must be one of None, Running, All; is 'Some'"),
    "no launcher": (
        "v1", {"mpiReplicaSpecs.Launcher": ...},
        "spec.mpiReplicaSpecs.Launcher: must be given: it is the pod that runs mpirun",
    ),
    "no slots in v1": ("v1", {"slotsPerWorker": 0}, "spec.slotsPerWorker: must be >= 1, is 0"),
    "no size": (
        "v1alpha1", {"gpus": ...},
        "spec: one of gpus, processingUnits and replicas must be given: how large the job is",
    ),
    "two sizes": (
        "v1alpha1", {"processingUnits": 4},
        "spec.processingUnits: only one of gpus and processingUnits can say how large the job is",
    ),
    "a number of GPUs between two nodes": (
        "v1alpha1", {"gpus": 12},
        "spec.gpus: 12 units cannot be spread over nodes of 8 each: take fewer than 8, or a multiple of it such as 8 or 16 (gpusPerNode is 8)",
    ),
    "no GPUs": ("v1alpha1", {"gpus": 0}, "spec.gpus: must be >= 1, is 0"),
    "no containers": (
        "v1alpha1", {"template.spec.containers": []},
        "spec.template.spec.containers: must hold at least one container",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_each_version_refuses(read_old: Callable[..., ReadJob], name: str) -> None:
    version, changes, message = REFUSED[name]
    with pytest.raises(ManifestError) as error:
        read_old(version, changes)
    assert message in str(error.value).splitlines()


WARNED: dict[str, tuple[str, Changes, str]] = {
    "a worker that sleeps": (
        "v1alpha2", {"Worker.template.spec.containers.0.command": ["/bin/sh", "-c", "sleep 365d"]},
        "spec.mpiReplicaSpecs.Worker.template.spec.containers[0].command: a worker that only sleeps cannot be reached: it serves SSH instead",
    ),
    "a launcher that always starts again": (
        "v1alpha2", {"Launcher.restartPolicy": "Always"},
        "spec.mpiReplicaSpecs.Launcher.restartPolicy: must be one of Never, OnFailure, ExitCode; is 'Always': Never is used",
    ),
    "workers without number": (
        "v1alpha2", {"Worker.replicas": ...}, "spec.mpiReplicaSpecs.Worker.replicas: not given: 1 is used"),
    "no main container": (
        "v1", {"mainContainer": "chief"},
        "spec.mpiReplicaSpecs.Worker.template.spec.containers: none is called 'chief', as mainContainer says: the first is used",
    ),
    "a field of v2beta1": (
        "v1alpha2", {"mpiImplementation": "Intel"},
        "spec.mpiImplementation: unknown field, ignored; here it is spec.mpiDistribution",
    ),
    "a field of v1alpha2": (
        "v1", {"backoffLimit": 5}, "spec.backoffLimit: unknown field, ignored; here it is spec.runPolicy.backoffLimit"),
    "units nobody knows": (
        "v1alpha1", {"processingResourceType": "tpu"},
        "spec.processingResourceType: must be nvidia.com/gpu or cpu, is 'tpu': nvidia.com/gpu is used",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WARNED)
def test_what_each_version_puts_up_with(read_old: Callable[..., ReadJob], name: str) -> None:
    version, changes, message = WARNED[name]
    assert message in texts(read_old(version, changes))


@pytest.mark.parametrize(("given", "taken"), [
    ("OnFailure", "OnFailure"), ("ExitCode", "Never"), ("Always", "Always"), ("None", "Never"), (3, "Never"), ("", "Never"),
])  # fmt: skip
def test_restart_policies_of_workers(read_old: Callable[..., ReadJob], given: object, taken: str) -> None:
    worker = worker_of(read_old("v1alpha2", {"Worker.restartPolicy": given}))
    assert worker.restart_policy == taken


@pytest.mark.parametrize(("command", "args", "idles"), [
    (["sleep"], ["365d"], True),
    (["/bin/sleep", "infinity"], None, True),
    (["sh", "-c", "exec sleep infinity"], None, True),
    (["bash", "-c"], ["tail -f /dev/null"], True),
    (["sh", "-c", "sleep 5; /usr/sbin/sshd -De"], None, False),
    (["/usr/sbin/sshd", "-De"], None, False),
])  # fmt: skip
def test_only_a_worker_that_does_nothing_loses_its_command(
    read_old: Callable[..., ReadJob], command: list[str], args: list[str] | None, idles: bool
) -> None:
    place = "Worker.template.spec.containers.0"
    found = read_old("v1alpha2", {f"{place}.command": command, **({f"{place}.args": args} if args else {})})
    assert ("command" in container(worker_of(found).template)) is not idles


def test_the_main_container_of_an_old_job_gets_what_the_job_needs(plan_old: Callable[..., Plan]) -> None:
    both = [{"name": "logs", "image": "me/logs"}, {"name": "mpi", "image": "me/app", "command": ["mpirun"]}]
    changes = {"mainContainer": "mpi", "Launcher.template.spec.containers": both,
               "Worker.template.spec.containers": [both[0], {"name": "mpi", "image": "me/app"}]}  # fmt: skip
    plan = plan_old("v1alpha2", changes)
    for pod in (plan.launcher["spec"]["template"], plan.workers[0]):
        logs, mpi = pod["spec"]["containers"]
        assert logs == both[0]
        assert "K_MPI_JOB_ROLE" in variables(mpi)


# What all of them get from the plan.


@pytest.mark.parametrize("version", ["v1alpha2", "v1", "v1alpha1"])
def test_ranks_are_the_hostfiles_slots_and_the_launcher_sees_no_gpu(
    plan_old: Callable[..., Plan], version: str
) -> None:
    plan = plan_old(version)
    job = plan.job
    lines = plan.config_map["data"]["hostfile"].splitlines()
    assert lines == [
        f"{job.name}-worker-{index}.{job.name}.default.svc slots={job.slots_per_worker}"
        for index in range({"v1alpha2": 1, "v1": 2, "v1alpha1": 2}[version])
    ]
    set_here = variables(launcher_container(plan))
    assert (set_here["NVIDIA_VISIBLE_DEVICES"], set_here["NVIDIA_DRIVER_CAPABILITIES"]) == ("", "")
    mounts = {item["path"]: item["mode"] for volume in plan.launcher["spec"]["template"]["spec"]["volumes"]
              for item in volume.get("configMap", {}).get("items", ())}  # fmt: skip
    assert mounts == {"hostfile": 0o444, "discover_hosts.sh": 0o555}


@pytest.mark.parametrize("version", ["v1alpha2", "v1", "v1alpha1"])
def test_the_discovery_script_tells_slots(plan_old: Callable[..., Plan], version: str) -> None:
    plan = plan_old(version)
    host = f"{plan.job.name}-worker-0.{plan.job.name}.default.svc:{plan.job.slots_per_worker}"
    assert f"echo {host}\n" in plan.config_map["data"]["discover_hosts.sh"]


@pytest.mark.parametrize("version", ["v1alpha2", "v1", "v1alpha1"])
def test_pods_carry_the_labels_that_old_selectors_ask_for(plan_old: Callable[..., Plan], version: str) -> None:
    plan = plan_old(version)
    launcher, worker = plan.launcher["spec"]["template"]["metadata"]["labels"], plan.workers[1 % len(plan.workers)]
    name = plan.job.name
    assert {"group_name": "kubeflow.org", "mpi_job_name": name, "mpi_role_type": "launcher"}.items() <= launcher.items()
    assert {"group-name": "kubeflow.org", "mpi-job-name": name, "mpi-job-role": "launcher"}.items() <= launcher.items()
    labels = worker["metadata"]["labels"]
    assert {"mpi_role_type": "worker", "mpi-job-role": "worker"}.items() <= labels.items()
    assert labels["replica-index"] == str(1 % len(plan.workers))


@pytest.mark.parametrize("version", ["v1alpha2", "v1", "v1alpha1"])
def test_a_worker_without_a_command_serves_ssh(plan_old: Callable[..., Plan], version: str) -> None:
    foreign, ours = plan_old(version), plan_old(version, image=IMAGES[version])
    assert container(foreign.workers[0])["command"][:2] == ["/bin/sh", "-c"]
    assert "/usr/sbin/sshd" in container(foreign.workers[0])["command"][2]
    # Told even where the entrypoint would do the same: an image made of ours may have a command for its launcher.
    assert container(ours.workers[0])["command"] == ["mpiboot", "worker"]


IMAGES = {"v1alpha2": "me/tensorflow", "v1": "me/horovod", "v1alpha1": "me/benchmarks"}


@pytest.mark.parametrize("version", IMAGES)
def test_keys_are_roots_unless_the_job_says_otherwise(plan_old: Callable[..., Plan], version: str) -> None:
    def paths(plan: Plan) -> set[str]:
        all_of_them = (plan.launcher["spec"]["template"], *plan.workers)
        mounts = [mount for pod in all_of_them for mount in container(pod)["volumeMounts"]]
        return {mount["mountPath"] for mount in mounts if mount["name"] == "ssh-auth"}

    assert paths(plan_old(version)) == {"/root/.ssh"}
    assert paths(plan_old(version, image=IMAGES[version])) == {"/root/.ssh"}
    assert paths(plan_old(version, {"sshAuthMountPath": "/home/user/.ssh"})) == {"/home/user/.ssh"}


def test_the_charts_job_is_elastic(read_old: Callable[..., ReadJob]) -> None:
    found = read_old("v1")
    assert texts(found) == []
    assert elastic.of_job(found.job) == elastic.Elastic(2, 1, 3)
    assert found.job.run_policy == RunPolicy("Running")


# v1alpha1


@pytest.mark.parametrize(("size", "workers", "each"), [
    ({"gpus": 16}, 2, 8),
    ({"gpus": 8}, 1, 8),
    ({"gpus": 5}, 1, 5),
    ({"gpus": 12, "gpusPerNode": 4}, 3, 4),
    ({"gpus": ..., "processingUnits": 6, "processingUnitsPerNode": 3}, 2, 3),
    ({"gpus": ..., "processingUnits": 16}, 2, 8),
])  # fmt: skip
def test_units_are_spread_over_workers(
    read_old: Callable[..., ReadJob], size: Changes, workers: int, each: int
) -> None:
    found = read_old("v1alpha1", size)
    assert texts(found) == []
    assert (found.job.workers, found.job.slots_per_worker) == (workers, each)
    assert container(worker_of(found).template)["resources"] == {"limits": {"nvidia.com/gpu": each}}
    assert "resources" not in container(found.job.launcher.template)


def test_replicas_take_their_slots_from_the_template(read_old: Callable[..., ReadJob]) -> None:
    place = "template.spec.containers.0.resources"
    resources = {"limits": {"cpu": "4", "memory": "1Gi"}, "requests": {"cpu": 2}}
    changes = {"gpus": ..., "replicas": 3, "processingResourceType": "cpu", place: resources}
    found = read_old("v1alpha1", changes)
    assert (found.job.workers, found.job.slots_per_worker) == (3, 4)
    resources = container(worker_of(found).template)["resources"]
    assert resources == {"limits": {"cpu": 4, "memory": "1Gi"}, "requests": {"cpu": 2}}
    assert "resources" not in container(found.job.launcher.template)
    assert read_old("v1alpha1", {"gpus": ..., "replicas": 3}).job.slots_per_worker == 1
    assert read_old("v1alpha1", {**changes, "slotsPerWorker": 2}).job.slots_per_worker == 2


def test_an_installations_own_number_of_gpus_counts(old: Callable[..., Manifest]) -> None:
    job = read(old("v1alpha1", {"gpus": 12}), units_per_node=4).job
    assert (job.workers, job.slots_per_worker) == (3, 4)


def test_the_rest_of_v1alpha1(read_old: Callable[..., ReadJob]) -> None:
    found = read_old("v1alpha1", {"activeDeadlineSeconds": 60})
    job = found.job
    assert job.launcher_creation_policy == "WaitForWorkersReady"
    assert (job.launcher.restart_policy, worker_of(found).restart_policy) == ("OnFailure", "Always")
    assert job.run_policy == RunPolicy("All", backoff_limit=6, active_deadline_seconds=60)
    job = read_old("v1alpha1", {"backoffLimit": 0, "template.spec.restartPolicy": "Never"}).job
    assert (job.launcher.restart_policy, job.run_policy.backoff_limit) == ("Never", 0)


def test_the_command_is_the_launchers_alone(plan_old: Callable[..., Plan]) -> None:
    # Without one the launcher's image runs its own.
    assert "command" not in launcher_container(plan_old("v1alpha1"))
    place = "template.spec.containers.0"
    plan = plan_old("v1alpha1", {f"{place}.command": ["mpirun"], f"{place}.args": ["train"]}, IMAGES["v1alpha1"])
    launcher, worker = launcher_container(plan), container(plan.workers[0])
    assert (launcher["command"], launcher["args"]) == (["mpiboot", "launch", "--", "mpirun"], ["train"])
    assert worker["command"] == ["mpiboot", "worker"]
    assert "args" not in worker


def test_a_launcher_on_a_masters_node(plan_old: Callable[..., Plan]) -> None:
    plan = plan_old("v1alpha1", {"launcherOnMaster": True})
    spec = plan.launcher["spec"]["template"]["spec"]
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    labels = [term["matchExpressions"][0]["key"] for term in required["nodeSelectorTerms"]]
    assert labels == ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"]
    assert [toleration["key"] for toleration in spec["tolerations"]] == labels
    assert "affinity" not in plan.workers[0]["spec"]


def test_a_version_that_nobody_knows_is_one_line(old: Callable[..., Manifest]) -> None:
    with pytest.raises(UnknownError) as error:
        read(Manifest({**old("v1").data, "apiVersion": "kubeflow.org/v2"}))
    assert str(error.value) == (
        "apiVersion: must be one of kubeflow.org/v2beta1, kubeflow.org/v1, kubeflow.org/v1alpha2, kubeflow.org/v1alpha1; is 'kubeflow.org/v2'; did you mean kubeflow.org/v1?"
    )
