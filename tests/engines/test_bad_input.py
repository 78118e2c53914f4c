"""Mistakes of users: one clear text, exit code 2, no stack trace, and nothing has run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.usefixtures("state")
@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["-n", "0", "--engine", "local", "--", "true"], "-n must be >= 1, is 0"),
        (["--workers", "0", "--engine", "local", "--", "true"], "--workers must be >= 1, is 0"),
        (["--workers", "x", "--engine", "local", "--", "true"], "'x' is not a valid integer"),
        (["-n", "0", "--engine", "kubernetes", "image", "--", "true"], "-n must be >= 1, is 0"),
        (["--workers", "0", "--engine", "kubernetes", "image", "--", "true"], "--workers must be >= 1, is 0"),
        (["--name", "Not_A_Name", "--engine", "kubernetes", "image", "--", "true"], "may hold only lowercase letters"),
        (["-f", "/no/such/job.yaml", "--engine", "kubernetes"], "cannot read /no/such/job.yaml: No such file"),
        (["--engine", "kubernetes", "--", "true"], "a cluster needs an image: mpiboot run --engine kubernetes"),
        (["--engine", "local"], "say what to run"),
        (["--engine", "local", "--"], "say what to run"),
        (["-f", "job.yaml", "image", "--", "true"], "a manifest brings the whole job: leave out IMAGE and the program"),
        (["-f", "/no/such/job.yaml"], "cannot read /no/such/job.yaml: No such file or directory"),
        (["-f", "job.yaml", "--workers", "5", "--mpi", "mpich", "--ssh-dir", "/k"],
         "mpiboot: a manifest brings the whole job: leave out --workers and --mpi and --ssh-dir; see: mpiboot run"),
        (["-f", "job.yaml", "--workers", "1"], "leave out --workers"),
        (["--engine", "kubernetes", "--timeline", "t.svg", "-v", "--allow-host-path", "image", "--", "true"],
         "mpiboot: --timeline and --allow-host-path: not with --engine kubernetes; leave it out; see"),
        (["--engine", "kubernetes", "--retries", "1", "--allow-privileges", "image", "--", "true"],
         "--retries and --allow-privileges: not with --engine kubernetes"),
        (["--namespace", "x", "--engine", "local", "--", "true"], "--namespace goes with --engine kubernetes"),
        (["-np", "0", "--engine", "local", "--", "true"], "-n must be >= 1, is 0"),
        (["--np=0", "--engine", "local", "--", "true"], "-n must be >= 1, is 0"),
        (["-n", "2", "image", "./a.out", "-x", "3"],
         "mpiboot: put -- before the program: mpiboot run -n 2 image -- ./a.out -x 3; see"),
        (["image", "hostname"], "put -- before the program: mpiboot run image -- hostname; see"),
        (["./a.out", "-x"], "put -- before the program: mpiboot run IMAGE -- ./a.out -x; see"),
        (["--engine", "local", "hostname", "-f"], "mpiboot run --engine local -- hostname -f; see"),
        (["./a.out"], "put -- before the program, and an image before that: mpiboot run IMAGE -- ./a.out"),
        (["image"], "say what to run in image: mpiboot run image -- PROGRAM [ARGS]"),
        (["nosuch.yaml"], "mpiboot: cannot read nosuch.yaml: No such file or directory\n"),
        (["job.yaml", "-n", "2", "--", "true"],
         "mpiboot: a manifest brings the whole job: leave out -n and the program; see"),
        (["--name", "Not_A_Name", "--engine", "local", "--", "true"], "may hold only lowercase letters"),
        (["-e", "NOVALUE", "--engine", "local", "--", "true"], "-e takes NAME=VALUE"),
        (["-e", "==", "--engine", "local", "--", "true"], "-e takes NAME=VALUE, not '=='"),
        (["--engine", "local", "--", ""], "the program is an empty word: write its name after `--`"),
        (["", "--", "true"], "IMAGE is an empty word: write the name of an image, like mpiboot/openmpi"),
        (["--engine", "local", "--timeline", "/no/such/dir/t.svg", "--", "true"], "cannot write the timeline /no/such"),
    ],
)  # fmt: skip
def test_wrong_command_lines(
    mpiboot: Callable[..., subprocess.CompletedProcess[str]], argv: list[str], text: str
) -> None:
    done = mpiboot("run", *argv)
    assert done.returncode == 2
    assert text in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_all_problems_of_a_manifest_are_reported_with_their_lines(
    mpiboot: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("""\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: bad}
spec:
  slotsPerWorker: -1
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: l, image: i}]}}}
    Worker:
      replicas: 0
      template: {spec: {containers: []}}
""")
    done = mpiboot("run", "-f", str(file))
    assert done.returncode == 2
    assert f"{file}:5: spec.slotsPerWorker: must be >= 0, is -1" in done.stderr
    assert f"{file}:9: spec.mpiReplicaSpecs.Worker.replicas: must be >= 1, is 0" in done.stderr
    assert "containers" in done.stderr


def test_an_engine_that_is_stopped(
    mpiboot: Callable[..., subprocess.CompletedProcess[str]], monkeypatch: pytest.MonkeyPatch, state: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{state}/no-engine.sock")
    asked = mpiboot("run", "--engine", "docker", "image", "--", "true")
    assert asked.returncode == 2
    assert f"no Docker engine answers at unix://{state}/no-engine.sock" in asked.stderr
    assert mpiboot("ps").stdout.split() == ["JOB", "ENGINE", "STATE", "WORKERS", "AGE", "IMAGE"]
    assert mpiboot("ps", "--engine", "docker").returncode == 2
    none = mpiboot("logs", "pi")
    assert (none.returncode, none.stderr) == (2, "mpiboot: there is no job named pi; there is no job at all\n")


def test_without_an_engine_the_job_runs_as_processes_with_a_notice(
    mpiboot: Callable[..., subprocess.CompletedProcess[str]], monkeypatch: pytest.MonkeyPatch, state: Path,
    manifest: Callable[..., str], program: Callable[[str], str],
) -> None:  # fmt: skip
    program("sshd")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{state}/no-engine.sock")
    done = mpiboot("run", "-f", manifest("echo ran", "some/image"))
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert "the job runs as processes of this machine instead" in done.stderr
