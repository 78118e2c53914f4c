"""The prototype openmpi prints what its files in golden/ hold: the guide's command, and each parameter of it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from mpiboot.job.prototypes.openmpi import OPENMPI
from tests.systems import golden

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    Typed = Callable[..., subprocess.CompletedProcess[str]]

GOLDEN = Path(__file__).parent / "golden"
GUIDE = (
    "openmpi hello --image registry.example/mpi:1 --secret openmpi-secret --workers 4 --gpu 0 "
    '--exec "mpiexec -n 4 --hostfile /kubeflow/openmpi/assets/hostfile --allow-run-as-root --display-map --tag-output '
    "--timestamp-output sh -c 'echo hello world'\""
)
SMALL = "openmpi hello --secret keys --workers 1"
CASES = {
    "guide": GUIDE,
    "defaults": "openmpi hello --secret keys",
    "pull": f"{SMALL} --imagePullPolicy Always --imagePullSecrets one,two",
    "limits": f"{SMALL} --gpu 2 --cpu 500m --memory 1Gi --customResources rdma/hca=1,example.com/fpga=2",
    "gpu-1": f"{SMALL} --gpu 1",
    "scheduling": f"{SMALL} --serviceAccountName trainer --schedulerName gang --nodeSelector zone=a,disk=ssd",
    "timeout": f"{SMALL} --initTimeout 60 -n team",
    "users": f"{SMALL} --runAsUser 1001 --runAsGroup 1002 --supplementalGroups 5,6",
    "volumes": SMALL + """ --volumes '[{"name": "home", "persistentVolumeClaim": {"claimName": "home"}}]'"""
                       """ --volumeMounts '[{"name": "home", "mountPath": "/home/data"}]'""",
    "network": f"{SMALL} --useHostNetwork true",
    "data": f"{SMALL} --s3Secret s3-keys --downloadDataFrom s3://bucket/in --downloadDataTo /kubeflow/openmpi/data "
            "--uploadDataFrom /kubeflow/openmpi/data/out --uploadDataTo s3://bucket/out/",
    "foreign-data": f"{SMALL} --image me/old --deliveryImage mpiboot/delivery --dataImage me/mpiboot-openmpi-s3 "
                    "--s3Secret s3-keys --uploadDataFrom /kubeflow/openmpi/data/out --uploadDataTo s3://bucket/out/",
    "no-meaning": f"{SMALL} --controllerImage registry.example/controller:1 --init /init.sh",
}  # fmt: skip


def objects(typed: Typed, *command: str) -> list[dict[str, Any]]:
    done = typed("generate", *command)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def pods(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in found if each["kind"] == "Pod"]


@pytest.mark.parametrize("case", CASES)
def test_it_prints_what_its_file_holds(typed: Typed, case: str) -> None:
    command = shlex.split(CASES[case])
    printed = typed("generate", *command).stdout
    golden.check(GOLDEN / f"{case}.yaml", printed)
    as_json = json.loads(typed("generate", *command, "-o", "json").stdout)
    assert as_json["items"] == list(yaml.safe_load_all(printed))


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.glob("*.yaml")} == set(CASES)


def test_every_parameter_is_described_and_in_a_golden_file(typed: Typed) -> None:
    printed, given = typed("generate", "openmpi", "--describe").stdout, " ".join(CASES.values())
    for parameter in OPENMPI.parameters:
        assert f"--{parameter.name}  (" in printed
        assert f"--{parameter.name} " in given


@pytest.mark.promise("C: imagePullPolicy and imagePullSecrets reach the pods")
@pytest.mark.promise("C: serviceAccountName and schedulerName reach all pods")
@pytest.mark.promise("C: runAsUser, runAsGroup and supplementalGroups hold for all pods")
@pytest.mark.promise("C: volumes and volumeMounts reach all pods")
def test_what_holds_for_all_pods(typed: Typed) -> None:
    volume, mount = {"name": "home", "emptyDir": {}}, {"name": "home", "mountPath": "/data"}
    found = objects(
        typed, *shlex.split(SMALL), "--imagePullPolicy", "Never", "--imagePullSecrets", "a,b", "--runAsUser", "1001",
        "--runAsGroup", "7", "--supplementalGroups", "8,9", "--serviceAccountName", "me", "--schedulerName", "mine",
        "--volumes", json.dumps([volume]), "--volumeMounts", json.dumps([mount]),
    )  # fmt: skip
    for pod in pods(found):
        spec, container = pod["spec"], pod["spec"]["containers"][0]
        assert container["imagePullPolicy"] == "Never"
        assert spec["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}]
        assert spec["securityContext"] == {"runAsUser": 1001, "runAsGroup": 7, "supplementalGroups": [8, 9]}
        assert (spec["serviceAccountName"], spec["schedulerName"]) == ("me", "mine")
        assert volume in spec["volumes"]
        assert mount in container["volumeMounts"]


@pytest.mark.promise("C: gpu, cpu, memory and customResources limit the workers only")
@pytest.mark.promise("C: nodeSelector places the workers only")
@pytest.mark.promise("C: useHostNetwork holds for the workers only")
def test_what_holds_for_workers_only(typed: Typed) -> None:
    found = objects(typed, *shlex.split(f"{CASES['limits']} --nodeSelector zone=a --useHostNetwork true"))
    master, worker = pods(found)
    assert worker["spec"]["containers"][0]["resources"] == {"limits": {
        "nvidia.com/gpu": 2, "cpu": "500m", "memory": "1Gi", "rdma/hca": "1", "example.com/fpga": "2"}}
    assert worker["spec"]["nodeSelector"] == {"zone": "a"}
    assert worker["spec"]["hostNetwork"] is True
    assert not {"nodeSelector", "hostNetwork"} & master["spec"].keys()
    assert "resources" not in master["spec"]["containers"][0]


@pytest.mark.promise("C: the hostfile at its path names the workers with their namespace and slots")
@pytest.mark.parametrize(("gpus", "slots"), [(0, 1), (1, 1), (2, 2), (8, 8)])
def test_slots_are_the_gpus_if_there_are_more_than_one(typed: Typed, gpus: int, slots: int) -> None:
    found = objects(typed, *shlex.split(f"openmpi x --secret s --workers 2 -n team --gpu {gpus}"))
    assert found[0]["data"] == {"hostfile": f"x-worker-0.x.team slots={slots}\nx-worker-1.x.team slots={slots}\n"}


def test_the_shell_gets_the_command_as_it_was_typed(typed: Typed) -> None:
    words = """  sh -c 'echo "$HOME"  $(hostname) $$ \\n'  """
    master = pods(objects(typed, *shlex.split(SMALL), "--exec", words))[0]
    *_, command = master["spec"]["containers"][0]["command"]
    # Kubernetes turns each `$$` into `$`, and leaves a single one alone unless a parenthesis follows.
    assert command.replace("$$", "$") == words


@pytest.mark.promise("C: only one of a pair of data parameters is an error")
@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("--downloadDataFrom s3://b/p", "--downloadDataFrom needs --downloadDataTo beside it"),
        ("--downloadDataTo /data", "--downloadDataTo needs --downloadDataFrom beside it"),
        ("--uploadDataFrom /data", "--uploadDataFrom needs --uploadDataTo beside it"),
        ("--uploadDataTo s3://b/p", "--uploadDataTo needs --uploadDataFrom beside it"),
        ("--downloadDataFrom http://b/p --downloadDataTo /d", "--downloadDataFrom must be s3://BUCKET/PREFIX"),
        ("--downloadDataFrom s3:///p --downloadDataTo /d", "--downloadDataFrom must be s3://BUCKET/PREFIX"),
        ("--uploadDataFrom out --uploadDataTo s3://b", "--uploadDataFrom must be a path from the root, is 'out'"),
        ("--customResources rdma/hca", "--customResources: 'rdma/hca' must be NAME=VALUE"),
        ("--nodeSelector a=1,a=2", "--nodeSelector: 'a' is given twice"),
        ("--imagePullSecrets a,,b", "--imagePullSecrets: a part between the commas is empty"),
        ("--imagePullPolicy Sometimes", "--imagePullPolicy must be one of IfNotPresent, Always, Never"),
        ("--workers 0", "--workers must be at least 1, is 0"),
        ("--runAsUser me", "--runAsUser must be a whole number, is 'me'"),
        ("--supplementalGroups 1,x", "--supplementalGroups: each must be a whole number, is 'x'"),
        ("--useHostNetwork maybe", "--useHostNetwork must be one of true, false, is 'maybe'"),
        ("--volumes '{'", "--volumes:1: not YAML"),
        ("--volumes '{\"name\": \"a\"}'", "--volumes must be a list"),
        ("--volumes '[{\"name\": \"openmpi-data\"}]'", "--volumes: the name 'openmpi-data' is taken"),
        ("--volumeMounts '[{\"name\": \"a\", \"mountPath\": \"/a\"}]'", "there is no volume 'a' in --volumes"),
        ("--s3secret keys", "openmpi has no parameter --s3secret; did you mean --s3Secret?"),
    ],
)
def test_bad_input_is_one_line_and_prints_nothing(typed: Typed, more: str, message: str) -> None:
    done = typed("generate", *shlex.split(f"{SMALL} {more}"))
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.startswith("mpiboot: ")
    assert done.stderr.count("\n") == 1


def test_without_a_secret_the_error_says_what_it_must_hold(typed: Typed) -> None:
    done = typed("generate", "openmpi", "hello")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--secret must be given: the name of a Secret with id_rsa, id_rsa.pub and authorized_keys" in done.stderr


def test_a_name_too_long_for_the_last_worker_is_refused(typed: Typed) -> None:
    done = typed("generate", "openmpi", "a" * 55, "--secret", "s")
    assert done.returncode == 2
    assert "characters long, at most 63 are possible" in done.stderr
