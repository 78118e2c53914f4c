
"""A manifest to a job: every default, every rule from both sides, and all problems at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.job.gang import SchedulingPolicy
from mpiboot.job.model import Job, Replica, RunPolicy
from mpiboot.job.problems import ManifestError
from mpiboot.job.read.manifest import Manifest, load
from mpiboot.job.read.read import ReadJob, read

if TYPE_CHECKING:
    from collections.abc import Callable


def messages(error: pytest.ExceptionInfo[ManifestError]) -> list[str]:
    return str(error.value).splitlines()


def test_defaults(read_small: Callable[..., ReadJob], small: Callable[..., dict[str, Any]]) -> None:
    specs = small({})["spec"]["mpiReplicaSpecs"]
    assert read_small({"Launcher.replicas": ...}) == ReadJob(
        Job(
            name="pi",
            namespace="default",
            uid=None,
            api_version="kubeflow.org/v2beta1",
            dialect="v2beta1",
            labels={},
            annotations={},
            slots_per_worker=1,
            implementation="OpenMPI",
            ssh_auth_mount_path="/root/.ssh",
            launcher_creation_policy="AtStartup",
            run_launcher_as_worker=False,
            main_container="",
            launcher=Replica(1, specs["Launcher"]["template"], "OnFailure"),
            worker=Replica(2, specs["Worker"]["template"], "Never"),
            run_policy=RunPolicy("None", None, None, None, suspend=False),
        )
    )


def test_everything_given(manifest: Callable[[str], Manifest]) -> None:
    found = read(manifest("root-working-launcher.yaml"))
    job = found.job
    assert found.warnings == ()
    assert (job.namespace, job.uid, job.labels) == (
        "hpc", "0b5c1d6e-0000-4000-8000-000000000001", {"kueue.x-k8s.io/queue-name": "night"},
    )  # fmt: skip
    assert (job.implementation, job.run_launcher_as_worker) == ("Intel", True)
    assert job.launcher_creation_policy == "WaitForWorkersReady"
    assert (job.workers, job.hosts, job.slots) == (2, 3, 3)
    assert job.launcher.restart_policy == "Never"
    scheduling = SchedulingPolicy(3, "night", {"cpu": 3}, "low", 60)
    assert job.run_policy == RunPolicy(suspend=True, scheduling_policy=scheduling)


CONTAINERS = "template.spec.containers"
RULES: dict[str, tuple[dict[str, Any], str | None]] = {
    "worker name of 63 characters": ({"metadata.name": "a" * 54}, None),
    "worker name of 64 characters": (
        {"metadata.name": "a" * 55},
        (
            f"metadata.name: gives a worker the name '{'a' * 55}-worker-1', which is 64 characters long, at most 63 "
            "are possible"
        ),
    ),
    "the tenth worker fits": ({"metadata.name": "a" * 54, "Worker.replicas": 10}, None),
    "the eleventh has one digit more": (
        {"metadata.name": "a" * 54, "Worker.replicas": 11},
        (
            f"metadata.name: gives a worker the name '{'a' * 54}-worker-10', which is 64 characters long, at most 63 "
            "are possible"
        ),
    ),
    "name with digits": ({"metadata.name": "pi-2"}, None),
    "name that starts with a digit": (
        {"metadata.name": "2pi"},
        (
            "metadata.name: gives a worker the name '2pi-worker-1', which may hold only lowercase letters, digits and "
            "'-', starting with a letter and ending with a letter or digit"
        ),
    ),
    "name with a dot": (
        {"metadata.name": "a.b"},
        (
            "metadata.name: gives a worker the name 'a.b-worker-1', which may hold only lowercase letters, digits and "
            "'-', starting with a letter and ending with a letter or digit"
        ),
    ),
    "no name": ({"metadata.name": ...}, "metadata.name: must be given"),
    "generated name": (
        {"metadata": {"generateName": "pi-"}},
        "metadata.name: must be given; only an API server can make a name from generateName",
    ),
    "name that is a number": ({"metadata.name": 5}, "metadata.name: must be text, is 5; put it in quotes"),
    "namespace that starts with a digit": ({"metadata.namespace": "2nd"}, None),
    "namespace with capitals": (
        {"metadata.namespace": "Prod"},
        "metadata.namespace: 'Prod' may hold only lowercase letters, digits and '-' and ending with a letter or digit",
    ),
    "label that is a number": (
        {"metadata.labels": {"v": 1}}, "metadata.labels.v: must be text, is 1; put it in quotes"),
    "no slots": ({"spec.slotsPerWorker": 0}, None),
    "negative slots": ({"spec.slotsPerWorker": -1}, "spec.slotsPerWorker: must be >= 0, is -1"),
    "slots that are true": ({"spec.slotsPerWorker": True}, "spec.slotsPerWorker: must be a whole number, is true"),
    "one launcher": ({"Launcher.replicas": 1}, None),
    "two launchers": ({"Launcher.replicas": 2}, "spec.mpiReplicaSpecs.Launcher.replicas: must be 1, is 2"),
    "no launchers": ({"Launcher.replicas": 0}, "spec.mpiReplicaSpecs.Launcher.replicas: must be 1, is 0"),
    "no launcher": (
        {"spec.mpiReplicaSpecs.Launcher": ...},
        "spec.mpiReplicaSpecs.Launcher: must be given: it is the pod that runs mpirun",
    ),
    "no worker role": ({"spec.mpiReplicaSpecs.Worker": ...}, None),
    "a worker": ({"Worker.replicas": 1}, None),
    "zero workers": ({"Worker.replicas": 0}, "spec.mpiReplicaSpecs.Worker.replicas: must be >= 1, is 0"),
    "workers without number": (
        {"Worker.replicas": ...}, "spec.mpiReplicaSpecs.Worker.replicas: must be given: how many workers, >= 1"),
    "restart on failure": ({"Worker.restartPolicy": "OnFailure"}, None),
    "restart never": ({"Launcher.restartPolicy": "Never"}, None),
    "restart always": (
        {"Worker.restartPolicy": "Always"},
        "spec.mpiReplicaSpecs.Worker.restartPolicy: must be one of Never, OnFailure; is 'Always'",
    ),
    "no containers": (
        {f"Worker.{CONTAINERS}": []},
        f"spec.mpiReplicaSpecs.Worker.{CONTAINERS}: must hold at least one container",
    ),
    "no template": (
        {"Launcher.template": ...},
        f"spec.mpiReplicaSpecs.Launcher.{CONTAINERS}: must hold at least one container",
    ),
    "a second container": (
        {f"Worker.{CONTAINERS}": [{"name": "a", "image": "a"}, {"name": "b", "image": "b"}]}, None),
    "containers that are a mapping": (
        {f"Worker.{CONTAINERS}": {"name": "a"}},
        f"spec.mpiReplicaSpecs.Worker.{CONTAINERS}: must be a list, is a mapping",
    ),
    "an init container that is text": (
        {"Worker.template.spec.initContainers": ["x"]},
        "spec.mpiReplicaSpecs.Worker.template.spec.initContainers[0]: must be a mapping, is 'x'",
    ),
    "annotations that are a list": (
        {"Launcher.template.metadata": {"annotations": ["a"]}},
        "spec.mpiReplicaSpecs.Launcher.template.metadata.annotations: must be a mapping, is a list",
    ),
    "Intel": ({"spec.mpiImplementation": "Intel"}, None),
    "MPICH": ({"spec.mpiImplementation": "MPICH"}, None),
    "another MPI": (
        {"spec.mpiImplementation": "IntelMPI"},
        "spec.mpiImplementation: must be one of OpenMPI, Intel, MPICH; is 'IntelMPI'; did you mean Intel?",
    ),
    "created when workers are ready": ({"spec.launcherCreationPolicy": "WaitForWorkersReady"}, None),
    "created some time": (
        {"spec.launcherCreationPolicy": "WaitForWorkers"},
        (
            "spec.launcherCreationPolicy: must be one of AtStartup, WaitForWorkersReady; is 'WaitForWorkers'; did you "
            "mean WaitForWorkersReady?"
        ),
    ),
    "another mount path": ({"spec.sshAuthMountPath": "/home/me/.ssh"}, None),
    "no mount path": ({"spec.sshAuthMountPath": ""}, None),
    "a mount path no kubelet takes": (
        {"spec.sshAuthMountPath": "/a:b"}, "spec.sshAuthMountPath: must not contain ':', is '/a:b'"),
    "launcher works": ({"spec.runLauncherAsWorker": True}, None),
    "launcher maybe works": (
        {"spec.runLauncherAsWorker": "maybe"}, "spec.runLauncherAsWorker: must be true or false, is 'maybe'"),
    "clean all": ({"spec.runPolicy": {"cleanPodPolicy": "All"}}, None),
    "clean some": (
        {"spec.runPolicy": {"cleanPodPolicy": "Some"}},
        "spec.runPolicy.cleanPodPolicy: must be one of None, Running, All; is 'Some'",
    ),
    "limits of zero": (
        {"spec.runPolicy": {"ttlSecondsAfterFinished": 0, "activeDeadlineSeconds": 0, "backoffLimit": 0}}, None),
    "a deadline in centuries": ({"spec.runPolicy": {"activeDeadlineSeconds": 2**40}}, None),
    "a time to live in centuries": (
        {"spec.runPolicy": {"ttlSecondsAfterFinished": 2**40}},
        "spec.runPolicy.ttlSecondsAfterFinished: must be <= 2147483647, is 1099511627776",
    ),
    "negative time to live": (
        {"spec.runPolicy": {"ttlSecondsAfterFinished": -5}},
        "spec.runPolicy.ttlSecondsAfterFinished: must be >= 0, is -5",
    ),
    "negative deadline": (
        {"spec.runPolicy": {"activeDeadlineSeconds": -5}},
        "spec.runPolicy.activeDeadlineSeconds: must be >= 0, is -5",
    ),
    "negative back-off": (
        {"spec.runPolicy": {"backoffLimit": -5}}, "spec.runPolicy.backoffLimit: must be >= 0, is -5"),
    "suspended": ({"spec.runPolicy": {"suspend": True}}, None),
    "managed elsewhere": ({"spec.runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}}, None),
    "an unknown manager": (
        {"spec.runPolicy": {"managedBy": "kueue"}},
        "spec.runPolicy.managedBy: must be one of kubeflow.org/mpi-operator, kueue.x-k8s.io/multikueue; is 'kueue'",
    ),
    "a policy that is a list": ({"spec.runPolicy": []}, "spec.runPolicy: must be a mapping, is a list"),
    "no spec": ({"spec": ...}, "spec: must be given"),
    "spec that is text": ({"spec": "x"}, "spec: must be a mapping, is 'x'"),
    "no replica specs": (
        {"spec.mpiReplicaSpecs": ...},
        "spec.mpiReplicaSpecs.Launcher: must be given: it is the pod that runs mpirun",
    ),
    "its own dialect": ({"spec.dialect": "v2beta1"}, None),
    "an unknown dialect": ({"spec.dialect": "v7"}, (
        "spec.dialect: must be one of v2beta1, v1, v1alpha2, v1alpha1; is 'v7'"
    )),
    "another kind": ({"kind": "TFJob"}, "kind: must be MPIJob, is 'TFJob'"),
    "no kind": ({"kind": ...}, "kind: must be MPIJob, is not given"),
    "another version": (
        {"apiVersion": "kubeflow.org/v2beta2"},
        (
            "apiVersion: must be one of kubeflow.org/v2beta1, kubeflow.org/v1, kubeflow.org/v1alpha2, "
            "kubeflow.org/v1alpha1; is 'kubeflow.org/v2beta2'; did you mean kubeflow.org/v2beta1?"
        ),
    ),
    "another group": (
        {"apiVersion": "batch/v1"}, (
            "apiVersion: must be one of kubeflow.org/v2beta1, kubeflow.org/v1, kubeflow.org/v1alpha2, "
            "kubeflow.org/v1alpha1; is 'batch/v1'"
        )),
    "no version": ({"apiVersion": ...}, (
        "apiVersion: must be one of kubeflow.org/v2beta1, kubeflow.org/v1, kubeflow.org/v1alpha2, "
        "kubeflow.org/v1alpha1; is not given"
    )),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), RULES.values(), ids=RULES)
def test_rules(read_small: Callable[..., ReadJob], changes: dict[str, Any], message: str | None) -> None:
    if message is None:
        assert read_small(changes).warnings == ()
        return
    with pytest.raises(ManifestError) as error:
        read_small(changes)
    assert message in messages(error)


BROKEN = """\
broken.yaml:4: metadata.name: gives a worker the name 'My_Job-worker-0', which may hold only lowercase letters, \
digits and '-', starting with a letter and ending with a letter or digit
broken.yaml:5: metadata.namespace: 'Prod' may hold only lowercase letters, digits and '-' \
and ending with a letter or digit
broken.yaml:7: spec.slotsPerWorker: must be a whole number, is 'two'
broken.yaml:8: spec.runLauncherAsWorker: must be true or false, is 'yes'
broken.yaml:9: spec.sshAuthMountPath: must be text, is 5; put it in quotes
broken.yaml:10: spec.launcherCreationPolicy: must be one of AtStartup, WaitForWorkersReady; is 'Later'
broken.yaml:11: spec.mpiImplementation: must be one of OpenMPI, Intel, MPICH; is 'openmpi'; did you mean OpenMPI?
broken.yaml:13: spec.runPolicy.cleanPodPolicy: must be one of None, Running, All; is 'all'; did you mean All?
broken.yaml:14: spec.runPolicy.ttlSecondsAfterFinished: must be >= 0, is -1
broken.yaml:15: spec.runPolicy.activeDeadlineSeconds: must be a whole number, is 1.5
broken.yaml:16: spec.runPolicy.backoffLimit: must be <= 2147483647, is 99999999999
broken.yaml:17: spec.runPolicy.suspend: must be true or false, is 1
broken.yaml:18: spec.runPolicy.managedBy: must be one of kubeflow.org/mpi-operator, kueue.x-k8s.io/multikueue; is 'me'
broken.yaml:19: spec.runPolicy.schedulingPolicy.minResources: must be a mapping, is 5
broken.yaml:19: spec.runPolicy.schedulingPolicy.minAvailable: must be a whole number, is 'many'
broken.yaml:22: spec.mpiReplicaSpecs.Launcher.replicas: must be 1, is 2
broken.yaml:23: spec.mpiReplicaSpecs.Launcher.restartPolicy: must be one of Never, OnFailure; is 'Always'
broken.yaml:26: spec.mpiReplicaSpecs.Launcher.template.spec.containers: must hold at least one container
broken.yaml:28: spec.mpiReplicaSpecs.Worker.replicas: must be >= 1, is 0
broken.yaml:29: spec.mpiReplicaSpecs.Worker.restartPolicy: must be one of Never, OnFailure; is 'ExitCode'
broken.yaml:34: spec.mpiReplicaSpecs.Worker.template.spec.containers[0].env: must be a list, is a mapping
broken.yaml:35: spec.mpiReplicaSpecs.Worker.template.spec.containers[0].command: must be a list, is 'sleep 5'
broken.yaml:36: spec.mpiReplicaSpecs.Worker.template.spec.containers[1]: must be a mapping, is 'just text'
"""

ODD = """\
odd.yaml:2: ConfigMap inputs is ignored: only the MPIJob is used
odd.yaml:11: metadata.annotations[mpiboot.dev/launch]: must be one of in-place, guard, gate, off, is 'inplace': ignored
odd.yaml:12: metadata.annotations[mpiboot.dev/lunch]: unknown annotation, ignored; did you mean launch?
odd.yaml:14: spec.cleanPodPolicy: unknown field, ignored; in this version it is spec.runPolicy.cleanPodPolicy
odd.yaml:15: spec.slotPerWorker: unknown field, ignored; did you mean slotsPerWorker?
odd.yaml:20: LAUNCHER.metadata.labels.version: must be text, is 1: put it in quotes; used as '1'
odd.yaml:23: LAUNCHER.spec.nodeselector: unknown field, kept; Kubernetes will ignore it; did you mean nodeSelector?
odd.yaml:24: LAUNCHER.spec.nodeSelector.gpu: must be text, is true: put it in quotes; used as 'true'
odd.yaml:29: LAUNCHER.spec.containers[0].args[1]: must be text, is 2: put it in quotes; used as '2'
odd.yaml:29: LAUNCHER.spec.containers[0].args[3]: must be text, is 0.5: put it in quotes; used as '0.5'
odd.yaml:30: LAUNCHER.spec.containers[0].env[0].value: must be text, is 4: put it in quotes; used as '4'
odd.yaml:31: LAUNCHER.spec.containers[0].resources.request: unknown field, kept; Kubernetes will ignore it; \
did you mean requests?
odd.yaml:36: WORKER.spec.frobnicate: unknown field, kept; Kubernetes will ignore it
odd.yaml:37: WORKER.spec.containers[0].volumeMounts[0].mountpath: unknown field, kept; Kubernetes will ignore it; \
did you mean mountPath?
"""


def test_all_errors_come_at_once_with_their_lines(manifest: Callable[[str], Manifest]) -> None:
    with pytest.raises(ManifestError) as error:
        read(manifest("broken.yaml"))
    assert f"{error.value}\n" == BROKEN


def test_oddities_are_warnings_with_their_lines(manifest: Callable[[str], Manifest]) -> None:
    found = "".join(f"{warning.text('odd.yaml')}\n" for warning in read(manifest("odd.yaml")).warnings)
    for role in ("Launcher", "Worker"):
        found = found.replace(f"spec.mpiReplicaSpecs.{role}.template", role.upper())
    assert found == ODD


def test_a_warning_stands_by_the_error_it_explains(small: Callable[..., dict[str, Any]]) -> None:
    data = small()
    specs = data["spec"]["mpiReplicaSpecs"]
    specs["launcher"] = specs.pop("Launcher")
    with pytest.raises(ManifestError) as error:
        read(Manifest(data))
    assert set(messages(error)) == {
        "spec.mpiReplicaSpecs.Launcher: must be given: it is the pod that runs mpirun",
        "spec.mpiReplicaSpecs.launcher: warning: unknown field, ignored; did you mean Launcher?",
    }


def test_kind_and_version_are_reported_together() -> None:
    with pytest.raises(ManifestError) as error:
        read(load("apiVersion: v1\nkind: Pod\n", "pod.yaml"))
    assert messages(error) == [
        (
            "pod.yaml:1: apiVersion: must be one of kubeflow.org/v2beta1, kubeflow.org/v1, kubeflow.org/v1alpha2, "
            "kubeflow.org/v1alpha1; is 'v1'"
        ),
        "pod.yaml:2: kind: must be MPIJob, is 'Pod'",
    ]


def test_a_relative_mount_path_is_what_a_kubelet_makes_of_it(read_small: Callable[..., ReadJob]) -> None:
    assert read_small({"spec.sshAuthMountPath": "keys"}).job.ssh_auth_mount_path == "/keys"


HOROVODRUN = ["horovodrun", "-np", "2", "--min-np", "3", "--host-discovery-script", "/etc/mpi/discover_hosts.sh", "x"]
IMPOSSIBLE = (
    "spec.mpiReplicaSpecs.Launcher.template: -np 2 is less than --min-np 3; begin with more ranks or lower --min-np"
)


@pytest.mark.parametrize(("slots", "command", "wrong"), [
    (1, HOROVODRUN, [IMPOSSIBLE]),
    (0, [*HOROVODRUN, "--max-np", "2"], [
        "spec.slotsPerWorker: slotsPerWorker is 0, so no worker of this elastic job takes a rank; give it at least 1",
        "spec.mpiReplicaSpecs.Launcher.template: --min-np 3 is more than --max-np 2; no number of ranks is both"]),
    (0, ["mpirun", "-np", "2", "x"], []),  # ranks on the launcher alone
    (1, ["sh", "-c", f"mpirun -np 2 prepare; {' '.join(['horovodrun', '--min-np', '3', *HOROVODRUN[5:]])}"], []),
    (1, [*HOROVODRUN[:3], *HOROVODRUN[5:], "--min-np", "2"], []),  # needs more workers, and may get them
])  # fmt: skip
def test_numbers_of_an_elastic_job_that_contradict_each_other(
    read_small: Callable[..., ReadJob], slots: int, command: list[str], wrong: list[str]
) -> None:
    changes = {
        "spec.slotsPerWorker": slots,
        "Worker.replicas": 1,
        "Launcher.template.spec.containers.0.command": command,
    }
    if not wrong:
        read_small(changes)
        return
    with pytest.raises(ManifestError) as caught:
        read_small(changes)
    assert sorted(problem.text() for problem in caught.value.problems) == sorted(wrong)
