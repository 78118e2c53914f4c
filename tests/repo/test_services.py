"""What set-up starts and stops on a machine that runs systemd, what it does not touch there, and what it prints."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import engine
import pytest
import services
import setup

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# A systemctl that keeps the state of each unit in a file. An engine answers while docker.service is active.
SYSTEMCTL = """#!/bin/sh
cd {folder}
shift  # --no-ask-password
echo "$*" >>asked
verb=$1; shift
[ "$verb" = start ] && [ -e hangs ] && exec sleep 600
[ "$verb" = start ] && [ -e fails ] && {{ echo "Job for docker.service failed." >&2; exit 1; }}
for unit; do
    case $verb in
        is-active) cat "$unit" 2>/dev/null || echo inactive;;
        is-enabled) cat "$unit.enabled" 2>/dev/null || echo disabled;;
        start) for one in docker.service docker.socket containerd.service; do echo active >$one; done;;
        stop) [ "$unit" = --no-block ] || echo inactive >"$unit";;
    esac
done
"""


@dataclass(frozen=True)
class Machine:
    """The files of the test's own systemd: the states of units, and the commands that it got."""

    folder: Path
    state: Path

    def asked(self, verb: str) -> list[str]:
        path = self.folder / "asked"
        return [line for line in path.read_text().splitlines() if line.startswith(verb)] if path.exists() else []

    def set(self, unit: str, state: str) -> None:
        (self.folder / unit).write_text(f"{state}\n")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    folder, programs = tmp_path / "systemd", tmp_path / "bin"
    folder.mkdir()
    programs.mkdir()
    for name, text in (("systemctl", SYSTEMCTL.format(folder=folder)), ("dockerd", "#!/bin/sh\n")):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)

    def answers(_limit: float = 0) -> bool:
        unit = folder / "docker.service"
        return unit.exists() and unit.read_text() == "active\n"

    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    for variable in ("MPIBOOT_ENGINE", "DOCKER_HOST"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(services, "SYSTEMD", folder)
    monkeypatch.setattr(engine, "SOCKET", tmp_path / "docker.sock")
    monkeypatch.setattr(engine, "COMES_UP_WITHIN", 1.0)
    monkeypatch.setattr(engine, "answers", answers)
    monkeypatch.setattr(engine, "can_install", lambda: True)
    return Machine(folder, tmp_path / "state")


def test_an_engine_that_setup_started_is_stopped_with_its_socket(machine: Machine) -> None:
    assert engine.provide(machine.state)
    engine.stop(machine.state)
    assert machine.asked("start") == ["start docker.service"]
    assert machine.asked("stop") == ["stop docker.service docker.socket containerd.service"]
    engine.stop(machine.state)
    assert len(machine.asked("stop")) == 1


def test_units_that_ran_before_keep_running(machine: Machine) -> None:
    machine.set("containerd.service", "active")
    machine.set("docker.socket", "activating")
    assert engine.provide(machine.state)
    engine.stop(machine.state)
    assert machine.asked("stop") == ["stop docker.service"]


def test_an_engine_that_setup_did_not_start_is_not_stopped(machine: Machine) -> None:
    machine.set("docker.service", "active")
    assert engine.provide(machine.state)
    engine.stop(machine.state)
    assert machine.asked("start") == machine.asked("stop") == []


def test_what_was_started_before_a_reboot_is_not_stopped(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert engine.provide(machine.state)
    (tmp_path / "boot").write_text("another\n")
    monkeypatch.setattr(services, "BOOT", tmp_path / "boot")
    engine.stop(machine.state)
    assert machine.asked("stop") == []


@pytest.mark.parametrize(("trouble", "said"), [("hangs", "did not end within"), ("fails", "Job for docker.")])
def test_an_engine_that_systemd_does_not_start_counts_as_absent(
    machine: Machine, trouble: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (machine.folder / trouble).touch()
    machine.set("docker.service", "inactive")
    assert not engine.provide(machine.state)
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if "did not start within" in line and "continuing without containers" in line]
    assert [line for line in lines if line.startswith("setup: its last line: ") and said in line]


def test_an_engine_that_hangs_while_it_starts_is_stopped(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_answers_in_time", lambda *_: machine.set("docker.service", "activating"))
    assert not engine.provide(machine.state)
    assert machine.asked("stop") == ["stop --no-block docker.service docker.socket containerd.service"]


@pytest.fixture
def installs_ssh(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Callable[[set[str]], None]:
    """Runs the step `ssh` on a machine that lacks these programs; they get installed."""

    def run(absent: set[str]) -> None:
        assert machine.folder.exists()
        monkeypatch.setattr(setup, "_has", lambda program: program not in absent)
        monkeypatch.setattr(setup, "install", lambda *_: True)
        assert setup.ssh()

    return run


@pytest.mark.parametrize("enabled", [["ssh.service"], ["ssh.socket"], ["ssh.service", "ssh.socket"]])
def test_an_sshd_that_setup_installs_does_not_start_at_the_next_boot(
    machine: Machine, installs_ssh: Callable[[set[str]], None], enabled: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for unit in enabled:
        machine.set(f"{unit}.enabled", "enabled")
    installs_ssh({"sshd", "ssh", "ssh-keygen"})
    assert machine.asked("disable") == [f"disable {' '.join(enabled)}"]
    line = f"the program sshd is needed, not a service on port 22: systemctl disable {' '.join(enabled)}"
    assert capsys.readouterr().err.strip() == f"setup: {line}"


def test_an_sshd_that_was_installed_before_keeps_its_service(
    machine: Machine, installs_ssh: Callable[[set[str]], None]
) -> None:
    machine.set("ssh.service.enabled", "enabled")
    installs_ssh({"ssh"})
    assert machine.asked("disable") == []
