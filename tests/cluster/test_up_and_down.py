"""The start and the end of the node. Run it while no node runs:

MPIBOOT_TEST_NODE=1 .venv/bin/pytest tests/cluster/test_up_and_down.py
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cluster import machine, network, processes
from cluster.fixtures import Cluster
from cluster.home import CACHE, NODE
from cluster.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TOOL = [sys.executable, str(Path(__file__).resolve().parents[2] / "tools" / "cluster")]
pytestmark = pytest.mark.timeout(600)
os.environ["MPIBOOT_CLUSTER"] = "built"  # without it kind would be used, and these tests are not about kind


@dataclass(frozen=True)
class Machine:
    """What a node may change on the machine, without what Docker may change at the same time."""

    rules: list[str]
    links: set[str]
    loopback: str
    mounts: list[str]
    cgroups: list[Path]
    processes: list[str]
    settings: dict[str, str]
    folders: dict[str, list[str]]

    @classmethod
    def now(cls) -> Machine:
        """The machine at this moment."""
        saved = "".join(_output(f"{family}-save") for family in network.FAMILIES)
        links = {line.split(":")[1].strip() for line in _output("ip", "-o", "link").splitlines()}
        running = [(entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                   for entry in Path("/proc").iterdir() if entry.name.isdigit() and (entry / "cmdline").exists()]
        return cls(
            rules=[line for line in saved.splitlines() if re.search(r"KUBE-|CNI-|mpiboot0", line)],
            links={link for link in links if not link.startswith(("veth", "br-"))} | _bridged_by_us(),
            loopback=_output("ip", "-o", "-4", "addr", "show", "dev", "lo"),
            mounts=machine.mounts(NODE.path),
            cgroups=machine.pod_cgroups(),
            processes=[command for command in running if str(NODE.path) in command],
            settings={name: (Path("/proc/sys") / name).read_text() for name in machine.SETTINGS
                      if (Path("/proc/sys") / name).exists()},
            folders={str(folder): sorted(map(str, folder.rglob("*"))) for folder in (*machine.FOLDERS, NODE.path)
                     if folder.exists()})


@pytest.fixture
def before() -> Iterator[Machine]:
    """The machine before the test. No node runs after the test, even if it fails."""
    if NODE.path.exists():
        pytest.fail("a node runs, and other tests may use it; end it with: make cluster-down", pytrace=False)
    yield Machine.now()
    _output(*TOOL, "down")


def test_a_node_with_pods_leaves_nothing_behind(before: Machine, image: Callable[[str], str]) -> None:
    _output(*TOOL, "up")
    cluster = Cluster(NODE.kubeconfig, ours=True)
    assert "runs" in _output(*TOOL, "status")
    assert _output(*TOOL, "kubeconfig").strip() == str(NODE.kubeconfig)
    tag = cluster.load(image("openmpi"))
    container = {"name": "main", "image": tag, "imagePullPolicy": "IfNotPresent", "command": ["sleep", "600"]}
    template = {"metadata": {"labels": {"app": "stays"}}, "spec": {"containers": [container]}}
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "stays"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"app": "stays"}}, "template": template}}
    cluster.kubectl("create", "-f", "-", given=json.dumps(manifest))
    cluster.kubectl("expose", "deployment", "stays", "--port=80", "--target-port=2222")
    cluster.kubectl("rollout", "status", "deployment/stays", "--timeout=90s")
    during = Machine.now()
    assert during.rules
    assert during.mounts
    assert during.cgroups
    _output(*TOOL, "down")
    assert Machine.now() == before


def test_a_start_that_was_killed_is_cleaned_up_by_the_next(before: Machine) -> None:
    first = subprocess.Popen([*TOOL, "up"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for("the API server's start", lambda: len(processes.recorded(NODE)) >= 3, 60)
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert not NODE.kubeconfig.exists()
    _output(*TOOL, "up")
    Cluster(NODE.kubeconfig, ours=True).kubectl("get", "nodes")
    _output(*TOOL, "down")
    assert Machine.now() == before


def test_a_dead_component_is_reported_and_the_next_start_replaces_it(before: Machine) -> None:
    _output(*TOOL, "up")
    victim = next(process for process in processes.recorded(NODE) if process.name == "kube-scheduler")
    os.kill(victim.pid, signal.SIGKILL)
    wait_for("its end", lambda: not victim.runs(), 20)
    assert _code(*TOOL, "status") == 3
    _output(*TOOL, "up")
    assert _code(*TOOL, "status") == 0
    _output(*TOOL, "down")
    assert Machine.now() == before


def test_a_failed_start_leaves_only_its_logs(before: Machine, tmp_path: Path) -> None:
    (tmp_path / "etcd").write_text("#!/bin/sh\necho no etcd today >&2\nexit 1\n")
    (tmp_path / "etcd").chmod(0o755)
    failed = subprocess.run([*TOOL, "up"], text=True, capture_output=True,
                            env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert failed.returncode == 1
    assert "etcd ended by itself" in failed.stderr
    assert "no etcd today" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert Machine.now() == before
    assert "no etcd today" in (CACHE / "failed-logs" / "etcd.log").read_text()


def _bridged_by_us() -> set[str]:
    return set(_output("ip", "-o", "link", "show", "master", network.BRIDGE).splitlines()) if (
        Path("/sys/class/net") / network.BRIDGE).exists() else set()


def _output(*command: str) -> str:
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    done = subprocess.run(command, text=True, capture_output=True, env={**os.environ, "PATH": path})
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout


def _code(*command: str) -> int:
    return subprocess.run(command, capture_output=True).returncode
