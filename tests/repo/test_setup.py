"""The set-up prints what it does, and an engine that does not start stops nothing else."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import engine
import pytest
import setup

TOOLS = Path(__file__).resolve().parents[2] / "tools"

# Calls the real `provide`. Only the engine's socket is another, on which nothing listens yet.
PROVIDE = """
import sys
from pathlib import Path
import engine, services
engine.SOCKET, engine.COMES_UP_WITHIN, services.SYSTEMD = Path(sys.argv[2]), 1.0, Path("/nonexistent")
print(engine.provide(Path(sys.argv[1])))
"""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to start an engine; get it with: sudo make test")


@dataclass(frozen=True)
class Machine:
    """A PATH whose `dockerd` is a script of the test, and a folder for the state of the set-up."""

    programs: Path
    state: Path

    def provide(self, dockerd: str, **environment: str) -> subprocess.CompletedProcess[str]:
        script = self.programs / "dockerd"
        script.write_text(f"#!/bin/sh\n{dockerd}\n")
        script.chmod(0o755)
        return subprocess.run(
            [sys.executable, "-c", PROVIDE, str(self.state), str(self.programs / "docker.sock")],
            env={"PATH": f"{self.programs}:{os.environ['PATH']}", "PYTHONPATH": str(TOOLS), **environment},
            capture_output=True, text=True, timeout=60)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "bin").mkdir()
    return Machine(tmp_path / "bin", tmp_path / "state")


@needs_root
def test_an_engine_that_hangs_counts_as_absent_and_is_ended(machine: Machine, tmp_path: Path) -> None:
    done = machine.provide(f"echo $$ >{tmp_path}/pid; exec sleep 600")
    assert done.stdout.strip() == "False"
    assert "did not start within 1 s; continuing without containers" in done.stderr
    pid = int((tmp_path / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists()


@needs_root
def test_the_last_line_of_an_engine_that_dies_is_printed(machine: Machine) -> None:
    done = machine.provide("echo starting; echo 'failed to mount overlay: operation not permitted'; exit 1")
    assert done.stdout.strip() == "False"
    assert "its last line: failed to mount overlay: operation not permitted" in done.stderr


def test_no_engine_is_used_when_the_user_chooses_local(machine: Machine) -> None:
    done = machine.provide("exit 1", MPIBOOT_ENGINE="local")
    assert done.stdout.strip() == "False"
    assert done.stderr.strip() == "setup: not using a Docker engine: MPIBOOT_ENGINE=local forbids it"


def test_a_named_engine_that_does_not_answer_is_not_replaced_by_another(machine: Machine) -> None:
    done = machine.provide("exit 1", DOCKER_HOST="unix:///nonexistent/docker.sock")
    assert done.stdout.strip() == "False"
    assert "no Docker engine answers at DOCKER_HOST=unix:///nonexistent/docker.sock" in done.stderr
    assert not machine.state.exists()


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Debian that has nothing of what set-up installs, and a user who is not root."""
    for name in ("apt-get", "python3"):
        (tmp_path / name).symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path))
    for variable in ("MPIBOOT_ENGINE", "DOCKER_HOST"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setattr(engine, "SOCKET", tmp_path / "docker.sock")
    monkeypatch.setattr(setup, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(setup, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(setup, "_has", lambda program: shutil.which(program) is not None)


VENV_PACKAGE = f"python3.{sys.version_info[1]}-venv"
ENGINE_PACKAGES = "docker.io containerd runc iptables mmdebstrap"


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    ("steps", "packages"),
    [
        (["venv", "ssh", "engine"], f"{VENV_PACKAGE} openssh-server openssh-client {ENGINE_PACKAGES}"),
        (["venv", "ssh", "engine", "runtimes"], f"{VENV_PACKAGE} openssh-server openssh-client {ENGINE_PACKAGES}"),
        (["venv"], VENV_PACKAGE),
    ],
)
def test_without_root_one_line_names_all_that_is_missing(
    steps: list[str], packages: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert setup.main(steps) == 1
    output = capsys.readouterr().err
    assert output.startswith("setup: Python's venv is missing")
    assert output.endswith(f"; install all of it with: sudo apt-get install {packages}\n")
    assert output.count("\n") == 1


@pytest.mark.usefixtures("bare")
def test_packages_of_an_engine_that_the_user_forbids_are_not_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MPIBOOT_ENGINE", "local")
    assert setup.main(["ssh", "engine"]) == 0
    output = capsys.readouterr().err
    assert "install all of it with: sudo apt-get install openssh-server openssh-client\n" in output
    assert output.count("apt-get") == 1


@pytest.mark.usefixtures("bare")
def test_a_line_says_what_set_up_continues_without(capsys: pytest.CaptureFixture[str]) -> None:
    assert setup.main(["ssh", "engine"]) == 0
    assert capsys.readouterr().err.splitlines()[1:] == [
        "setup: continuing without OpenSSH: jobs can run only in containers",
        "setup: continuing without containers",
    ]


def test_an_unknown_step_is_one_line_and_exit_2() -> None:
    done = subprocess.run([sys.executable, str(TOOLS / "setup.py"), "venvv"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: setup.py [venv]")
    assert done.stderr.count("\n") == 1
