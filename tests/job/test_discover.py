"""`discover_hosts.sh`, run by a real shell."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from mpiboot.job.plan.host_lists import discovery_script as script

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mpiboot.job.model import Dialect

HOSTS = ("pi-worker-0.pi.default.svc", "pi-worker-1.pi.default.svc")
BARE: tuple[Dialect, str] = ("v2beta1", "")
WITH_SLOTS: tuple[Dialect, str] = ("v1", ":2")


def run(text: str, shell: str, **env: str) -> str:
    done = subprocess.run([shell, "-c", text], env={"PATH": os.environ["PATH"], **env}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("shell", ["dash", "bash"])
@pytest.mark.parametrize(("dialect", "suffix"), [BARE, WITH_SLOTS], ids=["v2beta1", "v1"])
def test_the_static_list(
    program: Callable[[str], str], tmp_path: Path, shell: str, dialect: Dialect, suffix: str
) -> None:
    found = run(script(HOSTS, 2, dialect), program(shell), MPIBOOT_LIVE_HOSTS=str(tmp_path / "missing"))
    assert found.splitlines() == [f"{host}{suffix}" for host in HOSTS]


@pytest.mark.parametrize("shell", ["dash", "bash"])
@pytest.mark.parametrize(("dialect", "suffix"), [BARE, WITH_SLOTS], ids=["v2beta1", "v1"])
def test_the_live_file_replaces_it(
    program: Callable[[str], str], tmp_path: Path, shell: str, dialect: Dialect, suffix: str
) -> None:
    live = tmp_path / "a b" / "live"
    live.parent.mkdir()
    live.write_text(f"{HOSTS[1]}:2\nnew:2\n")
    found = run(script(HOSTS, 2, dialect), program(shell), MPIBOOT_LIVE_HOSTS=str(live))
    assert found.splitlines() == [f"{HOSTS[1]}{suffix}", f"new{suffix}"]


@pytest.mark.parametrize("hosts", [HOSTS, ()], ids=["live file", "static list"])
def test_no_ready_worker_is_a_failure(program: Callable[[str], str], tmp_path: Path, hosts: tuple[str, ...]) -> None:
    """horovodrun would take an empty list for one host without a name."""
    live = tmp_path / "live"
    if hosts:
        live.write_text("")
    env = {"PATH": os.environ["PATH"], "MPIBOOT_LIVE_HOSTS": str(live)}
    done = subprocess.run([program("sh"), "-c", script(hosts, 1, "v1")], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "no worker is ready\n")


def test_a_live_file_of_another_user_is_not_believed(program: Callable[[str], str], tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away; run the tests as root")
    live = tmp_path / "live"
    live.write_text("evil\n")
    os.chown(live, 12345, 12345)
    found = run(script(HOSTS, 1, "v2beta1"), program("sh"), MPIBOOT_LIVE_HOSTS=str(live))
    assert found.splitlines() == list(HOSTS)
