# ruff: noqa: E501 - messages stand here as a user sees them
"""`mpiboot lint`: findings of every family, with their lines, and exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpiboot.cli.main import main
from mpiboot.job.lint import lint

MANIFESTS = Path(__file__).parent / "manifests"


def told(text: str) -> list[str]:
    return [problem.text("f.yaml") for problem in lint(text, "f.yaml")]


def test_an_outdated_manifest_is_told_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(MANIFESTS / "v1alpha2.yaml")
    assert main(["lint", "-f", path]) == 1
    where = "spec.mpiReplicaSpecs"
    assert capsys.readouterr().out.splitlines() == [
        f"{path}:2: apiVersion: warning: v1alpha2 is outdated: mpiboot convert -f {path} writes the job as v2beta1",
        f"{path}:20: {where}.Launcher.template.spec.containers[0].resources.request: warning: unknown field, kept; Kubernetes will ignore it; did you mean requests?",
        f"{path}:25: {where}.Worker.restartPolicy: warning: must be one of Never, OnFailure, ExitCode, Always; is 'None': Never is used",
    ]


def test_a_good_manifest_has_no_findings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "-f", str(MANIFESTS / "cert-guide.yaml")]) == 0
    assert capsys.readouterr().out == ""


def test_errors_are_findings_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "-f", str(MANIFESTS / "broken.yaml")]) == 1
    assert "spec.slotsPerWorker: must be a whole number, is 'two'" in capsys.readouterr().out


JOB = (MANIFESTS / "pi.yaml").read_text()
BAD = {
    "a version nobody knows": (
        JOB.replace("v2beta1", "v3"),
        "apiVersion: must be one of kubeflow.org/v2beta1, kubeflow.org/v1, kubeflow.org/v1alpha2, kubeflow.org/v1alpha1; is 'kubeflow.org/v3'",
    ),
    "two jobs": (f"{JOB}\n---\n{JOB}", "holds 2 MPIJobs"),
    "not YAML": ("a: [1", "not YAML"),
    "nothing": ("", "is empty; it must hold an MPIJob"),
    "text": ("hello", "must be an MPIJob"),
    "another kind": ("apiVersion: v1\nkind: Service\n", "kind: must be MPIJob, is 'Service'"),
}


@pytest.mark.parametrize("command", ["lint", "convert", "run"])
@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_told_in_a_line(
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
    assert told(JOB.replace('"4"', '"9"')) == [
        "f.yaml:22: spec.mpiReplicaSpecs.Launcher.template.spec.containers[0]: asks for 9 ranks, but there are 4 slots: 2 x 2"
    ]


def test_values_of_the_chart() -> None:
    text = """
image: {repository: mpiboot/operator, tags: latest, tag: 1.0}
namespaces: {create: true}
replicaCount: 1
serviceAccount: default
"""
    assert told(text) == [
        "f.yaml:2: image.tags: the chart knows no such value; did you mean tag?",
        "f.yaml:2: image.tag: must be text, is 1.0; put it in quotes",
        "f.yaml:3: namespaces: the chart knows no such value; did you mean namespace?",
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
    assert told(text) == [
        "f.yaml:5: items[0].apiVersion: Kubernetes takes no such definition since 1.22: apply deploy/crd.yaml, which has all versions",
        "f.yaml:10: items[1].metadata: demo-master was made by the package openmpi: mpiboot generate openmpi makes the job anew",
    ]


def test_the_charts_own_values_are_fine() -> None:
    values = Path(__file__).parents[2] / "deploy" / "chart" / "values.yaml"
    assert lint(values.read_text(), "values.yaml") == ()
