
"""`mpiboot lint`: findings of every family, with their lines, and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from mpiboot.cli.main import main
from mpiboot.job.check.lint import lint

MANIFESTS = Path(__file__).parent / "manifests"


def findings_of(text: str) -> list[str]:
    return [problem.text("f.yaml") for problem in lint(text, "f.yaml")]


def test_lint_says_what_to_do_about_an_outdated_manifest(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(MANIFESTS / "v1alpha2.yaml")
    assert main(["lint", "-f", path]) == 1
    where = "spec.mpiReplicaSpecs"
    assert capsys.readouterr().out.splitlines() == [
        f"{path}:2: apiVersion: warning: v1alpha2 is outdated: mpiboot convert -f {path} writes the job as v2beta1",
        (
            f"{path}:20: {where}.Launcher.template.spec.containers[0].resources.request: warning: unknown field, "
            "kept; Kubernetes will ignore it; did you mean requests?"
        ),
        (
            f"{path}:25: {where}.Worker.restartPolicy: warning: must be one of Never, OnFailure, ExitCode, Always; is "
            "'None': Never is used"
        ),
    ]


def test_a_good_manifest_has_no_findings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "-f", str(MANIFESTS / "cert-guide.yaml")]) == 0
    assert capsys.readouterr().out == ""


def test_errors_are_findings_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "-f", str(MANIFESTS / "broken.yaml")]) == 1
    assert "spec.slotsPerWorker: must be a whole number, is 'two'" in capsys.readouterr().out


JOB = (MANIFESTS / "pi.yaml").read_text()
BAD = {
    "an unknown version": (
        JOB.replace("v2beta1", "v3"),
        (
            "apiVersion: must be one of kubeflow.org/v2beta1, kubeflow.org/v1, kubeflow.org/v1alpha2, "
            "kubeflow.org/v1alpha1; is 'kubeflow.org/v3'"
        ),
    ),
    "two jobs": (f"{JOB}\n---\n{JOB}", "holds 2 MPIJobs"),
    "not YAML": ("a: [1", "not YAML"),
    "nothing": ("", "is empty; it must hold an MPIJob"),
    "text": ("hello", "must be an MPIJob"),
    "another kind": ("apiVersion: v1\nkind: Service\n", "kind: must be MPIJob, is 'Service'"),
}


@pytest.mark.parametrize("command", ["lint", "convert", "run"])
@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, name: str
) -> None:
    text, message = BAD[name]
    path = tmp_path / "f.yaml"
    path.write_text(text)
    assert main([command, "-f", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    # An object of another kind is wrong in kind and in version.
    assert len(lines) == (2 if name == "another kind" else 1)
    assert message in err


def test_a_trap_has_the_line_of_its_container() -> None:
    assert findings_of(JOB.replace('"4"', '"9"')) == [
        (
            "f.yaml:22: spec.mpiReplicaSpecs.Launcher.template.spec.containers[0]: asks for 9 ranks, but there are 4 "
            "slots: 2 x 2"
        )
    ]


WORKERS = "spec.mpiReplicaSpecs.Worker.template.spec.containers[0]"
LAUNCHERS = "spec.mpiReplicaSpecs.Launcher.template.spec.containers[0]"
FROM_MPIBOOT = "remove {}; mpiboot gives mpirun the job's hosts"
REFUSED = {
    "a quantity with an unknown unit": (
        "limits: {cpu: 1, memory: 4gb}",
        [f"{WORKERS}.resources.limits.memory: is not a quantity: '4gb'; write it like 500m, 2 or 4Gi"],
    ),
    "a quantity in words": (
        "requests: {cpu: two}",
        [f"{WORKERS}.resources.requests.cpu: is not a quantity: 'two'; write it like 500m, 2 or 4Gi"],
    ),
    "a truth value, and a GPU": (
        "limits: {nvidia.com/gpu: true}",
        [f"{WORKERS}.resources.limits[nvidia.com/gpu]: is not a quantity: true; write it like 500m, 2 or 4Gi"],
    ),
    "quantities in all forms": (
        'limits: {cpu: 1.5, memory: 1e9, a/b: "0.5Gi", a/c: 500m, a/d: .5, a/e: 1E3, a/f: 2E}', [],
    ),
}


@pytest.mark.parametrize(("resources", "findings"), REFUSED.values(), ids=REFUSED)
def test_quantities_that_the_api_server_refuses_are_errors(resources: str, findings: list[str]) -> None:
    text = JOB.replace("limits: {cpu: 1, memory: 1Gi}", resources)
    found = lint(text, "f.yaml")
    assert [f"{problem.path}: {problem.message}" for problem in found] == findings
    line = text.count("\n", 0, text.index(resources)) + 1
    assert all((problem.level, problem.line) == ("error", line) for problem in found)


LAUNCHER_COMMANDS = {
    "a program without name": ('[""]', "command", "its first word is empty: name a program"),
    "nothing": ("[]", "command", "is empty: the launcher runs the command of the image"),
    "hosts of its own": (
        "[horovodrun, -np, 4, -H, 'server1:2,server2:2', python, t.py]", "",
        "-H names 'server1', which is not a host of this job: " + FROM_MPIBOOT.format("-H"),
    ),
    "hosts in a shell's words": (
        "[sh, -c, 'mpirun --host=a ./x']", "", (
            "--host names 'a', which is not a host of this job: "
        ) + FROM_MPIBOOT.format("--host"),
    ),
    "a hostfile of its own": (
        "[mpirun, -n, 4, --hostfile, hosts.txt, ./x]", "",
        (
            "--hostfile names 'hosts.txt', which is not the job's hostfile (/etc/mpi/hostfile): "
        ) + FROM_MPIBOOT.format("--hostfile"),
    ),
    "the job's own hosts": ("[mpirun, -n, 4, -H, 'pi-worker-0:2,pi-worker-1.pi.default.svc:2', ./x]", "", ""),
    "the job's own hostfile": ("[mpirun, -n, 4, --hostfile, /etc/mpi/hostfile, ./x]", "", ""),
    "a variable": ("[mpirun, -n, 4, -H, $(HOSTS), ./x]", "", ""),
    "the program's own options": ("[mpirun, -n, 4, ./x, -H, me, --hostfile, mine, -f, f]", "", ""),
}  # fmt: skip


@pytest.mark.parametrize(("command", "field", "message"), LAUNCHER_COMMANDS.values(), ids=LAUNCHER_COMMANDS)
def test_commands_that_cannot_mean_what_they_say_are_found(command: str, field: str, message: str) -> None:
    data = json.loads(json.dumps(yaml.safe_load(JOB)))
    container = data["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    container.pop("args", None)
    container["command"] = yaml.safe_load(command)
    if message.startswith("is empty"):
        for role in data["spec"]["mpiReplicaSpecs"].values():
            role["template"]["spec"]["containers"][0]["image"] = "me/x"
    problems = lint(json.dumps(data), "f.json")
    found = [(problem.path, problem.message) for problem in problems if "text, is" not in problem.message]
    assert found == ([(f"{LAUNCHERS}.{field}".rstrip("."), message)] if message else [])


def test_our_image_without_a_command_has_nothing_to_run() -> None:
    data = yaml.safe_load(JOB)
    roles = data["spec"]["mpiReplicaSpecs"]
    for role in roles.values():
        container = role["template"]["spec"]["containers"][0]
        container["image"] = "mpiboot/openmpi:latest"
        container.pop("command", None)
        container.pop("args", None)
    message = "has no command, and mpiboot's images have none: add the command to run"
    assert message in [problem.message for problem in lint(json.dumps(data), "f.json")]


IMAGES = {
    "me/app": True, "registry.example:5000/Team/app": False, "REGISTRY.example/team/app:1.2@sha256:0123abcd": True,
    "localhost/a__b/c-d.e:V1": True, "me/app:": False, "me app": False, "https://me/app": False, "Me/app": False,
    "me/APP": False, " me/app": False, "[::1]:5000/app": True, "me//app": False,
}  # fmt: skip


@pytest.mark.parametrize(("name", "good"), IMAGES.items())
def test_a_name_that_no_image_can_have_is_found(name: str, good: bool) -> None:
    data = yaml.safe_load(JOB)
    data["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["image"] = name
    found = [problem.path for problem in lint(json.dumps(data), "f.json") if problem.level == "error"]
    assert found == ([] if good else [f"{WORKERS}.image"])


def test_values_of_the_chart() -> None:
    text = """
image: {repository: mpiboot/operator, tags: latest, tag: 1.0}
namespaces: {create: true}
replicaCount: 1
serviceAccount: default
"""
    assert findings_of(text) == [
        "f.yaml:2: image.tags: the chart has no such value; did you mean tag?",
        "f.yaml:2: image.tag: must be text, is 1.0; put it in quotes",
        "f.yaml:3: namespaces: the chart has no such value; did you mean namespace?",
        "f.yaml:5: serviceAccount: must be a mapping of create, name, annotations; is 'default'",
    ]


def test_what_the_packages_generated_long_ago() -> None:
    text = """
apiVersion: v1
kind: List
items:
  - apiVersion: apiextensions.k8s.io/v1beta1
    kind: CustomResourceDefinition
    metadata: {name: mpijobs.kubeflow.org}
  - apiVersion: v1
    kind: Pod
    metadata: {name: demo-master}
    spec: {containers: [{name: openmpi-job, command: [sh, /kubeflow/openmpi/assets/init.sh]}]}
"""
    assert findings_of(text) == [
        (
            "f.yaml:5: items[0].apiVersion: Kubernetes 1.22 and newer refuse this version: apply deploy/crd.yaml, "
            "which has all versions"
        ),
        (
            "f.yaml:10: items[1].metadata: demo-master was made by the package openmpi: mpiboot generate openmpi "
            "makes it again"
        ),
    ]


def test_the_charts_own_values_are_fine() -> None:
    values = Path(__file__).parents[2] / "deploy" / "chart" / "values.yaml"
    assert lint(values.read_text(), "values.yaml") == ()
