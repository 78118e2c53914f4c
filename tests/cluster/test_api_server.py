"""The API server of a test session: it answers, has its own ports, and never outlives the process that started it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from cluster import api, processes
from cluster.home import Home
from cluster.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.fixtures import Kubernetes

OWNER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from cluster import api, home
api.up(home.Home(Path(sys.argv[2])), dies_with_us=True)
print("up", flush=True)
sys.stdin.read()
"""


def test_objects_are_kept_and_validated(api_server: Kubernetes) -> None:
    api_server.kubectl("create", "configmap", "kept", "--from-literal=key=value")
    assert api_server.kubectl("get", "configmap", "kept", "-o", "jsonpath={.data.key}") == "value"
    refused = api_server.try_kubectl("create", "configmap", "Not_A_Name")
    assert refused.returncode != 0
    assert "Not_A_Name" in refused.stderr


def test_pods_are_accepted_though_no_controller_makes_service_accounts(api_server: Kubernetes) -> None:
    api_server.kubectl("run", "accepted", "--image=none")
    assert api_server.kubectl("get", "pod", "accepted", "-o", "jsonpath={.status.phase}") == "Pending"


def test_two_of_them_run_side_by_side(api_server: Kubernetes, tmp_path: Path) -> None:
    second = Home(tmp_path / "second")
    try:
        api.up(second, dies_with_us=True)
        assert second.kubeconfig.read_text() != api_server.kubeconfig.read_text()
        assert '"gitVersion"' in api_server.kubectl("get", "--raw", "/version")
    finally:
        api.down(second)
    assert not second.path.exists()


@pytest.mark.usefixtures("api_server")  # it skips the test where the programs are missing
def test_it_ends_when_its_owner_is_killed(tmp_path: Path) -> None:
    home = Home(tmp_path / "orphan")
    tools = str(api.__file__).rpartition("/cluster/")[0]
    owner = subprocess.Popen([sys.executable, "-c", OWNER, tools, str(home.path)], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    try:
        assert owner.stdout is not None
        assert owner.stdin is not None
        assert owner.stdout.readline() == "up\n"
        children = processes.recorded(home)
        assert [child.name for child in children] == ["etcd", "kube-apiserver"]
        assert all(child.runs() for child in children)
    finally:
        owner.kill()
        owner.communicate()
    wait_for("the end of both", lambda: not any(child.runs() for child in children), 20)
