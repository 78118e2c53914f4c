"""The prototypes print what their files in golden/ hold: every parameter of each, alone or with what it needs."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from mpiboot.controller.install.crd import crd
from mpiboot.controller.install.prototype import OPERATOR
from mpiboot.job.prototypes.mpi_job import CUSTOM, SIMPLE
from tests.systems import golden

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from mpiboot.job.prototypes.prototype import Prototype

    Typed = Callable[..., subprocess.CompletedProcess[str]]

GOLDEN = Path(__file__).parent / "golden"
CASES = {
    "simple": "mpi-job-simple bench",
    "simple-gpus-16": "mpi-job-simple bench --gpus 16",
    "simple-gpus-3": "mpi-job-simple bench --gpus 3",
    "simple-gpus-0": "mpi-job-simple bench --gpus 0",
    "simple-gpusPerNode": "mpi-job-simple bench --gpus 12 --gpusPerNode 4",
    "simple-image": "mpi-job-simple bench --image registry.example/team/train:1",
    "simple-command": "mpi-job-simple bench --command mpirun,python,train.py",
    "simple-args": "mpi-job-simple bench --image registry.example/team/train:1 --args=-n,16,train.py",
    "simple-null": "mpi-job-simple bench --command null --args null",
    "simple-name": "mpi-job-simple component --name bench --namespace team",
    "simple-v1alpha1": "mpi-job-simple bench --gpus 16 --version v1alpha1",
    "simple-v1alpha1-gpus-0": "mpi-job-simple bench --gpus 0 --version v1alpha1",
    "custom": "mpi-job-custom bench",
    "custom-replicas": "mpi-job-custom bench --replicas 3 --gpusPerReplica 4",
    "custom-gpusPerReplica-0": "mpi-job-custom bench --replicas 2 --gpusPerReplica 0",
    "custom-image": "mpi-job-custom bench --image registry.example/train:1 --command mpirun --args python,train.py",
    "custom-pvc": "mpi-job-custom bench --pvcName data --volumeMountPath /data -n team",
    "custom-v1alpha1": "mpi-job-custom bench --replicas 2 --gpusPerReplica 4 --version v1alpha1 "
                       "--pvcName data --volumeMountPath /data --command mpirun,train",
}  # fmt: skip


def documents(typed: Typed, command: str) -> list[dict[str, Any]]:
    done = typed("generate", *shlex.split(command))
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


@pytest.mark.promise("B: mpi-job-simple has its parameters and their defaults")
@pytest.mark.promise("B: mpi-job-custom has its parameters and their defaults")
@pytest.mark.parametrize("case", CASES)
def test_it_prints_what_its_file_holds(typed: Typed, case: str) -> None:
    command = shlex.split(CASES[case])
    printed = typed("generate", *command).stdout
    golden.check(GOLDEN / f"{case}.yaml", printed)
    as_json = typed("generate", *command, "-o", "json").stdout
    assert json.loads(as_json) == yaml.safe_load(printed)


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.glob("*.yaml")} == set(CASES)


@pytest.mark.parametrize("prototype", [SIMPLE, CUSTOM, OPERATOR], ids=lambda each: each.name)
def test_it_describes_every_parameter_with_its_default(typed: Typed, prototype: Prototype) -> None:
    printed = typed("generate", prototype.name, "--describe").stdout
    for parameter in prototype.parameters:
        assert f"--{parameter.name}  (default {parameter.default})\n    {parameter.help}\n" in printed
    given = " ".join([*CASES.values(), OPERATOR_COMMAND])
    assert [each.name for each in prototype.parameters if f"--{each.name}" not in given] == []


@pytest.mark.promise("B: command and args split on commas, and null means absent")
def test_command_and_args_split_at_commas(typed: Typed) -> None:
    job, = documents(typed, "mpi-job-simple x --command mpirun,-n,2 --args python,train.py")
    launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    assert (launcher["command"], launcher["args"]) == (["mpirun", "-n", "2"], ["python", "train.py"])
    job, = documents(typed, "mpi-job-simple x --image registry.example/i --command null --args null")
    launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    assert launcher.keys() == {"name", "image"}


@pytest.mark.promise("B: simple: --gpus below gpusPerNode is one worker with all of them")
@pytest.mark.promise("B: simple: a multiple of gpusPerNode is that many full workers")
@pytest.mark.parametrize(("gpus", "workers", "each"), [(1, 1, 1), (7, 1, 7), (8, 1, 8), (16, 2, 8), (800, 100, 8)])
def test_gpus_are_spread_over_full_workers(typed: Typed, gpus: int, workers: int, each: int) -> None:
    job, = documents(typed, f"mpi-job-simple x --gpus {gpus}")
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]
    assert worker["replicas"] == workers
    assert worker["template"]["spec"]["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": each}}
    assert job["spec"]["slotsPerWorker"] == each


@pytest.mark.promise("B: custom: replicas workers with a limit of gpusPerReplica each")
@pytest.mark.promise("B: custom: pvcName with volumeMountPath mounts persistent-storage")
def test_custom_has_its_workers_and_its_volume(typed: Typed) -> None:
    job, = documents(typed, "mpi-job-custom x --replicas 3 --gpusPerReplica 2 --pvcName c --volumeMountPath /mnt")
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]
    pod = worker["template"]["spec"]
    assert (worker["replicas"], pod["containers"][0]["resources"]) == (3, {"limits": {"nvidia.com/gpu": 2}})
    assert pod["volumes"] == [{"name": "persistent-storage", "persistentVolumeClaim": {"claimName": "c"}}]
    assert pod["containers"][0]["volumeMounts"] == [{"name": "persistent-storage", "mountPath": "/mnt"}]


@pytest.mark.promise("B: simple: any other number is an error that names both")
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("mpi-job-simple x --gpus 12", "--gpus 12 with --gpusPerNode 8: 12 units cannot be spread"),
        ("mpi-job-simple x --gpus two", "--gpus must be a whole number, is 'two'"),
        ("mpi-job-simple x --gpus -1", "--gpus must be at least 0, is -1"),
        ("mpi-job-simple x --gpusPerNode 0", "--gpusPerNode must be at least 1, is 0"),
        ("mpi-job-simple x --gpu 1", "mpi-job-simple has no parameter --gpu; did you mean --gpus or --gpusPerNode?"),
        ("mpi-job-simple x --gpus", "Option '--gpus' requires an argument."),
        ("mpi-job-simple x y", "unexpected extra argument (y)"),
        ("mpi-job-simple", "mpi-job-simple needs a name"),
        ("mpi-job-simple Bench", "NAME 'Bench' may hold only lowercase letters"),
        ("mpi-job-simple x -n Team", "--namespace 'Team' may hold only lowercase letters"),
        ("mpi-job-simple x --version v1", "--version must be one of v2beta1, v1alpha1, is 'v1'"),
        ("mpi-job-simple x -o xml", "'xml' is not one of 'yaml', 'json'"),
        ("mpi-job-custom x --pvcName data", "--pvcName needs --volumeMountPath beside it"),
        ("mpi-job-custom x --volumeMountPath /data", "--volumeMountPath needs --pvcName beside it"),
        ("mpi-job-custom x --replicas 0", "--replicas must be at least 1, is 0"),
        ("mpi-job-simpel x", "there is no prototype 'mpi-job-simpel'; did you mean mpi-job-simple"),
        ("nothing-like-it x", "there are mpi-operator, mpi-job-simple, mpi-job-custom, openmpi"),
    ],
)
def test_bad_input_is_one_line_and_prints_nothing(typed: Typed, command: str, message: str) -> None:
    done = typed("generate", *shlex.split(command))
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.startswith("mpiboot: ")
    assert done.stderr.count("\n") == 1


OPERATOR_COMMAND = ("mpi-operator my-operator --namespace team --image registry.example/operator:1 --gpusPerNode 4 "
                    "--kubectlDeliveryImage registry.example/delivery:1")  # fmt: skip


@pytest.mark.promise("B: mpi-operator gives CRD, ServiceAccount, ClusterRole, binding and Deployment, four of them "
                     "named by name")  # fmt: skip
def test_the_operator_is_five_objects_and_four_have_its_name(typed: Typed) -> None:
    definition, account, role, binding, deployment = documents(typed, OPERATOR_COMMAND)
    assert definition == json.loads(json.dumps(crd()))
    kinds = [each["kind"] for each in (account, role, binding, deployment)]
    assert kinds == ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Deployment"]
    assert {each["metadata"]["name"] for each in (account, role, binding, deployment)} == {"my-operator"}
    assert {each["metadata"].get("namespace") for each in (account, deployment)} == {"team"}
    assert binding["roleRef"]["name"] == "my-operator"
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "my-operator", "namespace": "team"}]
    template = deployment["spec"]["template"]
    assert template["metadata"]["labels"] == deployment["spec"]["selector"]["matchLabels"]
    assert template["spec"]["serviceAccountName"] == "my-operator"
    assert template["spec"]["containers"][0]["image"] == "registry.example/operator:1"


def test_what_the_operator_has_no_setting_for_is_named_in_a_comment(typed: Typed) -> None:
    printed = typed("generate", *shlex.split(OPERATOR_COMMAND)).stdout
    arguments = list(yaml.safe_load_all(printed))[-1]["spec"]["template"]["spec"]["containers"][0]["args"]
    for parameter, flag, value in (("gpusPerNode", "--gpus-per-node", "4"),
                                   ("kubectlDeliveryImage", "--delivery-image", "registry.example/delivery:1")):
        if flag in arguments:
            assert arguments[arguments.index(flag) + 1] == value
        else:
            assert f"# {parameter}={value} has no meaning for this operator.\n" in printed
