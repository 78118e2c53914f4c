"""The operator on a real node: a process with the rights of an installed operator, for one namespace."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from cluster import ports
from cluster.waiting import wait_for

from tests.conftest import REPOSITORY, missing
from tests.e2e.jobs import Jobs
from tests.foreign.build import FOREIGN, build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import docker
    from cluster.fixtures import Cluster

STARTS_WITHIN = 60.0


@dataclass
class Operator:
    """An operator process for one namespace. It can be killed and started again."""

    command: list[str]
    log: Path
    process: subprocess.Popen[bytes] | None = field(default=None)

    def start(self) -> None:
        """Start the process."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self) -> None:
        """Kill it without a warning, as a dying machine does."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture(scope="session")
def installed(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kubeconfig with the rights of the installed operator. All of deploy/ is applied except the Deployment."""
    if not cluster.ours:
        missing("a node that pods and this machine share", "unset KUBECONFIG; make cluster")
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(REPOSITORY / "deploy" / "crd.yaml"))
    objects = list(yaml.safe_load_all((REPOSITORY / "deploy" / "operator.yaml").read_text()))
    rest = [each for each in objects if each["kind"] != "Deployment"]
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=yaml.safe_dump_all(rest))
    cluster.kubectl("wait", "--for=condition=Established", "crd/mpijobs.kubeflow.org", "--timeout=60s")
    account = next(each["metadata"] for each in objects if each["kind"] == "ServiceAccount")
    token = cluster.kubectl("create", "token", account["name"], "-n", account["namespace"], "--duration=12h").strip()
    config: dict[str, Any] = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"] = [{"name": each["name"], "user": {"token": token}} for each in config["users"]]
    path = tmp_path_factory.mktemp("operator") / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(json.dumps(config))
    return path


@pytest.fixture(scope="module")
def space(cluster: Cluster, installed: Path) -> Iterator[str]:
    """The namespace of the operator."""
    assert installed.exists()
    name = f"e2e-{uuid.uuid4().hex[:6]}"
    cluster.kubectl("create", "namespace", name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def operator(cluster: Cluster, space: str, installed: Path, tmp_path_factory: pytest.TempPathFactory,
             request: pytest.FixtureRequest) -> Iterator[Operator]:
    """Our operator. Workers check in at this machine's address. A test module's OPERATOR_FLAGS add flags."""
    port, = ports.free(cluster.host, 1)
    operator = Operator([
        sys.executable, "-m", "mpiboot", "operator", "--kubeconfig", str(installed), "--namespace", space,
        # The Lease of the installation is for operators of the whole cluster.
        "--no-leader-election", "--peer-leases", "", "--monitoring-port", "0", "--listen", cluster.host,
        "--checkin-port", str(port), "--checkin-urls", f"http://{cluster.host}:{port}",
        *getattr(request.module, "OPERATOR_FLAGS", ()),
    ], tmp_path_factory.mktemp("operator") / "log")
    operator.start()
    yield operator
    operator.kill()
    sys.stdout.write(operator.log.read_text())  # pytest shows it if a test fails


@pytest.fixture
def jobs(cluster: Cluster, space: str, operator: Operator) -> Iterator[Jobs]:
    """Submits jobs in the operator's namespace. They are deleted after the test, so that the next one has room."""
    assert operator.process is not None
    assert operator.process.poll() is None, operator.log.read_text()
    jobs = Jobs(cluster, space)
    yield jobs
    jobs.delete_all()
    wait_for("the end of the test's pods", lambda: not jobs.pods(), STARTS_WITHIN)


@pytest.fixture(scope="session")
def foreign(docker_engine: docker.DockerClient, cluster: Cluster) -> Callable[[str], str]:
    """The tag of an image without mpiboot, loaded to the node: `foreign("peers" | "guide")`."""
    return lambda name: cluster.load(build(docker_engine, FOREIGN / name))


@pytest.fixture(scope="session")
def derived(docker_engine: docker.DockerClient, image: Callable[[str], str], cluster: Cluster) -> Callable[..., str]:
    """The tag of an image built from ours, loaded to the node: `derived()`, or of another user: `derived("0:0")`."""

    def get(owner: str = "1000:0") -> str:
        tag = f"derived-{owner.partition(':')[0]}"
        base = image("openmpi")
        return cluster.load(build(docker_engine, FOREIGN / "derived", base=base, tag=tag, arguments={"OWNER": owner}))

    return get


@pytest.fixture(scope="session")
def loaded(image: Callable[[str], str], cluster: Cluster) -> Callable[[str], str]:
    """The tag of one of our images, loaded to the node: `loaded("openmpi")`."""
    return lambda name: cluster.load(image(name))
