"""From a registry of one's own to a running job, in the steps of docs/how-to/registry.md."""

from __future__ import annotations

import importlib.util
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from mpiboot.containers.client import docker_cli
from mpiboot.controller.install.install import NAME, NAMESPACE
from tests.conftest import REPOSITORY, missing
from tests.e2e.jobs import Jobs, one_on_each, pi, ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cluster.fixtures import Cluster

_spec = importlib.util.spec_from_file_location("registry", REPOSITORY / "tests" / "images" / "registry.py")
assert _spec is not None
assert _spec.loader is not None
_registry = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_registry)


@pytest.fixture
def registry(cluster: Cluster) -> Iterator[str]:
    """The address of a registry, from which the node's containerd pulls without TLS because it is on the loopback."""
    if not cluster.ours:
        missing("a node that pods and this machine share", "unset KUBECONFIG; make cluster")
    with _registry.registry() as found:
        yield found.address


@pytest.fixture
def installed_from_registry(
    registry: str, cluster: Cluster, installed: Path, space: str, image: Callable[[str], str],
    mpiboot: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path,
) -> Iterator[Path]:  # fmt: skip
    """The folder that `mpiboot install` wrote, applied. The operator minds the test's namespace only."""
    assert installed.exists()
    image("operator")
    image("openmpi")
    folder = tmp_path / "mpiboot-install"
    done = mpiboot("install", "--registry", f"{registry}/team", "--push", "-o", str(folder), timeout=300)
    assert done.returncode == 0, done.stderr
    objects = list(yaml.safe_load_all((folder / "mpiboot.yaml").read_text()))
    deployment: dict[str, Any] = next(each for each in objects if each["kind"] == "Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["env"].append(
        {"name": "MPIBOOT_OPERATOR_NAMESPACE", "value": space})  # fmt: skip
    try:
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=yaml.safe_dump_all(objects))
        cluster.kubectl("rollout", "status", f"deployment/{NAME}", "-n", NAMESPACE, "--timeout=120s")
        yield folder
    finally:
        cluster.kubectl("delete", "deployment", NAME, "-n", NAMESPACE, "--ignore-not-found")


def test_what_install_writes_runs_its_job_from_the_registry(
    installed_from_registry: Path, registry: str, cluster: Cluster, space: str, image: Callable[[str], str]
) -> None:
    jobs = Jobs(cluster, space)
    job = yaml.safe_load((installed_from_registry / "job.yaml").read_text())
    main = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    assert main["image"].startswith(f"{registry}/team/mpiboot-openmpi:")
    assert "@sha256:" in main["image"]
    try:
        output = jobs.run(job)
        lines = sorted(line for line in output.splitlines() if line.startswith("rank "))
        assert [line.split()[-1] for line in lines] == [f"pi-worker-{index}" for index in (0, 0, 1, 1)]
        # The same image under a name that does not show what it is: its containers look into themselves.
        by_hand = f"{registry}/team/openmpi:mine"
        subprocess.run([docker_cli(), "tag", image("openmpi"), by_hand], check=True)
        try:
            subprocess.run([docker_cli(), "push", "--quiet", by_hand], capture_output=True, check=True)
        finally:
            subprocess.run([docker_cli(), "rmi", "--no-prune", by_hand], capture_output=True, check=True)
        output = jobs.run(pi("by-hand", by_hand))
        assert ranks(output) == one_on_each("by-hand", 2)
        bare = pi("no-command", by_hand, runPolicy={"backoffLimit": 0})
        # The pod of a launcher that may restart goes with its Job, and its log too.
        bare["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "Never"
        del bare["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["command"]
        assert jobs.end(jobs.submit(bare)) == "Failed"
        assert "no command to run" in jobs.output("no-command")
    finally:
        jobs.delete_all()
