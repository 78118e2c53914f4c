"""The first operator's guide: its manifest as it is printed, mistakes included, and the commands that it names."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.foreign.build import build

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    import docker
    from cluster.fixtures import Cluster

    from tests.systems.shell import Shell

HERE = Path(__file__).parent
NAME = "tensorflow-mnist"
LAUNCHER = f"kubectl get pods -l mpi_job_name={NAME},mpi_role_type=launcher -o name"
GET = f"kubectl get mpijobs.v1alpha2.kubeflow.org {NAME} -o json"


@pytest.fixture(scope="module")
def built(docker_engine: docker.DockerClient, image: Callable[[str], str]) -> str:
    """The reader's image, made of one of ours under a name of its own."""
    return build(docker_engine, HERE, base=image("openmpi"), tag="a-v1alpha2")


@pytest.fixture
def manifest(built: str, cluster: Cluster) -> Callable[..., str]:
    """The guide's manifest with the reader's image; `program` are more words for it, the rest changes its spec."""

    def written(program: str = "", **spec: Any) -> str:  # noqa: ANN401
        # The node has no registry to ask for `latest`; a reader's image has a tag of its own.
        text = (HERE / f"{NAME}.yaml").read_text()
        text = text.replace("IMAGE", f"{cluster.load(built)}\n            imagePullPolicy: IfNotPresent")
        text = text.replace("fashion.py", f"fashion.py {program}".rstrip())
        if not spec:
            return text
        data = yaml.safe_load(text)
        data["spec"] |= spec
        data["spec"] = {name: value for name, value in data["spec"].items() if value is not ...}
        return yaml.safe_dump(data)

    return written


def ranks(output: str) -> Counter[str]:
    """How many ranks ran on each host."""
    return Counter(re.findall(r"^rank \d+ of \d+ on (\S+)$", output, re.MULTILINE))


def conditions(shell: Shell) -> list[tuple[str, str, str, str]]:
    found = shell.json(GET)["status"]["conditions"]
    return [(each["type"], each["status"], each["reason"], each["message"]) for each in found]


def true(shell: Shell, kind: str) -> bool:
    status = shell.json(GET).get("status") or {}
    return any(each["type"] == kind and each["status"] == "True" for each in status.get("conditions") or ())


@pytest.mark.promise("A: the guide's manifest runs as it is printed")
@pytest.mark.promise("A: malformed and unknown fields are an event and a warning, never a refusal")
@pytest.mark.promise("A: without -np the ranks are the slots of the hostfile")
@pytest.mark.promise("A: kubectl get -o yaml mpijobs shows conditions, replica statuses and times")
@pytest.mark.promise("A: pods carry group_name, mpi_job_name and mpi_role_type")
@pytest.mark.promise("A: conditions have v1alpha2's reasons and messages")
@pytest.mark.promise("A: when a job ends Running turns False and keeps its reason")
@pytest.mark.promise("A: cleanPodPolicy Running and All end with an empty Worker status")
@pytest.mark.promise("A: a worker with neither command nor args serves SSH")
def test_the_manifest_runs_with_its_mistakes(shell: Shell, manifest: Callable[..., str]) -> None:
    shell("kubectl apply -f - -n $NAMESPACE", given=manifest())
    pods = shell(f"kubectl get pods -l group_name=kubeflow.org,mpi_job_name={NAME},mpi_role_type=worker -o name; true")
    assert shell.ended(NAME) == "Succeeded", shell.report()
    output = shell(f"kubectl logs -f $({LAUNCHER})")
    assert ranks(output) == {f"{NAME}-worker-0": 2}
    assert "2 ranks trained" in output
    who = f"MPIJob {shell.namespace}/{NAME}"
    assert conditions(shell) == [
        ("Created", "True", "MPIJobCreated", f"{who} is created."),
        ("Running", "False", "MPIJobRunning", f"{who} is running."),
        ("Succeeded", "True", "MPIJobSucceeded", f"{who} successfully completed."),
    ]
    status = shell.json("kubectl get -o json mpijobs " + NAME)["status"]
    assert status["replicaStatuses"] == {"Launcher": {"succeeded": 1}, "Worker": {}}
    assert all(status[name].endswith("Z") for name in ("startTime", "completionTime", "lastReconcileTime"))
    told = shell("kubectl get events --field-selector reason=ValidationWarning -o jsonpath='{.items[*].message}'")
    assert "resources.request: unknown field" in told
    assert "Worker.restartPolicy: must be one of Never, OnFailure, ExitCode, Always; is 'None'" in told
    assert pods in ("", f"pod/{NAME}-worker-0\n")  # it may not be there yet at that moment
    shell.until("no worker is left", lambda: "worker" not in shell("kubectl get pods -o name"))


@pytest.mark.promise("A: kubectl get pods -l mpi_job_name=JOB,mpi_role_type=launcher finds the launcher")
@pytest.mark.promise("A: kubectl logs -f and kubectl attach show what the launcher prints")
@pytest.mark.promise("A: the launcher's hostfile is 0444 and its scripts are 0555")
@pytest.mark.promise("A: the launcher sees no GPU: both NVIDIA variables are empty")
@pytest.mark.promise("A: the objects are JOB-config, JOB-worker-N and JOB-launcher")
@pytest.mark.promise("A: the short names mj and mpij, and a status subresource")
def test_the_guides_commands_while_it_runs(shell: Shell, manifest: Callable[..., str]) -> None:
    shell("kubectl apply -f - -n $NAMESPACE", given=manifest("wait"))
    shell.until("the job runs", lambda: true(shell, "Running"))
    # Each goes on until it has seen a step; then the program is let go.
    shell(f"""PODNAME=$({LAUNCHER})
        grep -q 'step 3' <(kubectl logs -f $PODNAME)
        grep -q 'step' <(kubectl attach $PODNAME)""")
    assert shell(f"kubectl exec $({LAUNCHER}) -c mpi-launcher -- sh -c "
                 "'stat -L -c %a /etc/mpi/hostfile /etc/mpi/*.sh; env | grep ^NVIDIA_ | sort'").split() == [
        "444", "555", "555", "NVIDIA_DRIVER_CAPABILITIES=", "NVIDIA_VISIBLE_DEVICES="]  # fmt: skip
    names = shell(f"kubectl get configmap/{NAME}-config pod/{NAME}-worker-0 job/{NAME}-launcher -o name").split()
    assert len(names) == 3
    assert shell(f"kubectl get configmap/{NAME}-config -o jsonpath='{{.metadata.labels.app}}'") == NAME
    for short in ("mj", "mpij"):
        assert NAME in shell(f"kubectl get {short} -o name")
    types = "jsonpath='{.status.conditions[*].type}'"
    assert "Running" in shell(f"kubectl get mj {NAME} --subresource=status -o {types}")
    shell(f"kubectl exec {NAME}-worker-0 -- touch /tmp/looked")
    assert shell.ended(NAME) == "Succeeded", shell.report()


@pytest.mark.promise("A: Restarting and Running replace each other")
@pytest.mark.promise("A: nothing changes after Failed")
@pytest.mark.promise("A: runPolicy's backoffLimit and activeDeadlineSeconds override the top-level ones")
def test_a_launcher_that_fails_is_restarted_and_then_failed(shell: Shell, manifest: Callable[..., str]) -> None:
    limits = {"backoffLimit": 0, "activeDeadlineSeconds": 1,
              "runPolicy": {"backoffLimit": 1, "activeDeadlineSeconds": 120}}  # fmt: skip
    held = "until [ -e /tmp/go ]; do sleep 0.2; done; exit 3"
    text = manifest(**limits).replace("mpirun --allow-run-as-root python fashion.py", held)
    shell("kubectl apply -f - -n $NAMESPACE", given=text)
    shell.until("the first launcher runs", lambda: true(shell, "Running"))
    spec = shell.json(f"kubectl get job {NAME}-launcher -o json")["spec"]
    assert (spec["backoffLimit"], spec["activeDeadlineSeconds"]) == (1, 120)
    fails = f"kubectl exec $({LAUNCHER} --field-selector status.phase=Running) -- touch /tmp/go"
    shell(fails)
    shell.until("its restart", lambda: true(shell, "Restarting"))
    assert [each[0] for each in conditions(shell)] == ["Created", "Restarting"]
    who = f"MPIJob {shell.namespace}/{NAME}"
    assert conditions(shell)[1][1:] == ("True", "MPIJobRestarting", f"{who} is restarting.")
    shell.until("the second launcher runs", lambda: true(shell, "Running"))
    assert [each[0] for each in conditions(shell)] == ["Created", "Running"]
    shell(fails)
    assert shell.ended(NAME) == "Failed"
    assert [each[:3] for each in conditions(shell)] == [
        ("Created", "True", "MPIJobCreated"), ("Running", "False", "MPIJobRunning"), ("Failed", "True", "MPIJobFailed"),
    ]  # fmt: skip
    assert conditions(shell)[2][3] == f"{who} has failed"
    before = conditions(shell)
    shell(f"kubectl label mpijob {NAME} touched=yes; kubectl delete pod -l mpi_job_name={NAME} --wait=true")
    assert conditions(shell) == before
    assert shell.json(GET)["status"]["replicaStatuses"]["Worker"] == {}


@pytest.mark.promise("A: fields left out have v1alpha2's defaults")
def test_fields_left_out(shell: Shell, manifest: Callable[..., str]) -> None:
    shell("kubectl apply -f - -n $NAMESPACE", given=manifest(slotsPerWorker=..., cleanPodPolicy=...))
    assert shell.ended(NAME) == "Succeeded", shell.report()
    assert ranks(shell(f"kubectl logs $({LAUNCHER})")) == {f"{NAME}-worker-0": 1}
    assert shell.json(f"kubectl get job {NAME}-launcher -o json")["spec"]["backoffLimit"] == 6
    status = shell.json(GET)["status"]
    assert status["replicaStatuses"]["Worker"] == {"active": 1}
    assert shell(f"kubectl get pod {NAME}-worker-0 -o jsonpath='{{.status.phase}}'") == "Running"


@pytest.mark.promise("A: mainContainer says which container runs the job")
def test_the_main_container_runs_the_job(shell: Shell, manifest: Callable[..., str]) -> None:
    data = yaml.safe_load(manifest(mainContainer="mpi"))
    beside = {"Launcher": ["true"], "Worker": ["sleep", "infinity"]}
    for role, replica in data["spec"]["mpiReplicaSpecs"].items():
        containers = replica["template"]["spec"]["containers"]
        containers[0]["name"] = "mpi"
        image = {name: containers[0][name] for name in ("image", "imagePullPolicy")}
        containers.insert(0, {"name": "beside", **image, "command": beside[role]})
    shell("kubectl apply -f - -n $NAMESPACE", given=json.dumps(data))
    assert shell.ended(NAME) == "Succeeded", shell.report()
    assert ranks(shell(f"kubectl logs $({LAUNCHER}) -c mpi")) == {f"{NAME}-worker-0": 2}


@pytest.mark.promise("A: mpiDistribution takes OpenMPI, IntelMPI and MPICH")
@pytest.mark.parametrize(("distribution", "name"), [("OpenMPI", "openmpi"), ("IntelMPI", "intel"), ("MPICH", "mpich")])
def test_each_distribution_finds_its_hosts(
    shell: Shell, manifest: Callable[..., str], loaded: Callable[[str], str], built: str, distribution: str, name: str
) -> None:
    program = (HERE / "fashion.py").read_text()
    text = manifest(mpiDistribution=distribution).replace(built, loaded(name))
    data = yaml.safe_load(text)
    container = data["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    # Without a number Hydra starts one rank.
    number = () if distribution == "OpenMPI" else ("-n", "2")
    container["command"], container["args"] = ["mpirun"], [*number, "python", "-c", program]
    shell("kubectl apply -f - -n $NAMESPACE", given=json.dumps(data))
    assert shell.ended(NAME) == "Succeeded", shell.report()
    assert ranks(shell(f"kubectl logs $({LAUNCHER})")) == {f"{NAME}-worker-0": 2}


@pytest.mark.promise("A: a launcher count other than 1, and worker and slot counts below 1, are refused")
@pytest.mark.parametrize(("change", "message"), [
    ("s/slotsPerWorker: 2/slotsPerWorker: 0/", "spec.slotsPerWorker must be at least 1"),
    ("/Launcher:/,/replicas/s/replicas: 1/replicas: 2/", "Launcher.replicas must be 1"),
    ("/Worker:/,/replicas/s/replicas: 1/replicas: 0/", "Worker.replicas must be at least 1"),
])  # fmt: skip
def test_counts_that_cannot_be_are_refused(
    shell: Shell, manifest: Callable[..., str], change: str, message: str
) -> None:
    assert message in shell(f"sed '{change}' | kubectl apply -f -", given=manifest(), fails=True)
    assert shell("kubectl get mpijobs -o name") == ""


@pytest.mark.promise("A: the guide's manifest runs as it is printed")
def test_the_same_manifest_runs_on_docker(built: str, tmp_path: Path, mpiboot: Callable[..., Any]) -> None:
    path = tmp_path / "mnist.yaml"
    text = (HERE / f"{NAME}.yaml").read_text()
    path.write_text(text.replace("IMAGE", built).replace(f"name: {NAME}", "name: a-mnist"))
    done: subprocess.CompletedProcess[str] = mpiboot("run", "-q", "--engine", "docker", "-f", str(path))
    assert done.returncode == 0, done.stderr
    assert ranks(done.stdout) == {"a-mnist-worker-0": 2}
