"""What tests get of a cluster: `api_server`, one of their own, and `cluster`, a whole node that everybody shares."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from . import api, images, versions
from .errors import ClusterError
from .node import host, running
from .places import NODE, Home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def kubectl() -> str:
    """The one that was built, else the machine's own: beside kind there may be no other."""
    built = versions.program("kubectl")
    return built if Path(built).exists() else shutil.which("kubectl") or built


@dataclass(frozen=True)
class Kubernetes:
    """A cluster that answers, and the administrator's way in."""

    kubeconfig: Path

    def kubectl(self, *arguments: str, given: str | None = None, check: bool = True, timeout: float = 120) -> str:
        """What kubectl printed; `given` is its standard input. A refusal fails the test with kubectl's words."""
        done = self.try_kubectl(*arguments, given=given, timeout=timeout)
        if check and done.returncode:
            said = done.stderr.strip()
            pytest.fail(f"kubectl {' '.join(arguments)} ended with {done.returncode}: {said}", pytrace=False)
        return done.stdout

    def try_kubectl(self, *arguments: str, given: str | None = None,
                    timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """The same, for a test that expects a refusal."""
        command = [kubectl(), "--kubeconfig", str(self.kubeconfig), *arguments]
        return subprocess.run(command, input=given, text=True, capture_output=True, timeout=timeout)


@dataclass(frozen=True)
class Cluster(Kubernetes):
    """A cluster that runs pods."""

    ours: bool  # the node that `make cluster` started, not one that $KUBECONFIG names

    @property
    def host(self) -> str:
        """The address at which pods reach this machine, where tests run an operator as a process."""
        return host(NODE)

    def load(self, image: str) -> str:
        """The image, after it was copied from the Docker engine to the node. Another cluster pulls by itself."""
        if self.ours:
            images.load(image)
        return image


@contextlib.contextmanager
def started(home: Home) -> Iterator[Kubernetes]:
    """An API server of one's own, for as long as it is needed."""
    try:
        api.up(home, dies_with_us=True)
        yield Kubernetes(home.kubeconfig)
    finally:
        api.down(home)


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubernetes]:
    """An API server with etcd and nothing else: no controller runs jobs, makes service accounts or deletes orphans."""
    if absent := api.missing():
        _missing(f"{', '.join(absent)} of a Kubernetes API server", ".venv/bin/python tools/cluster build api")
    with started(Home(tmp_path_factory.mktemp("api-server"))) as kubernetes:
        yield kubernetes


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """A node that runs pods: the cluster of $KUBECONFIG, else the one of `make cluster`."""
    if named := os.environ.get("KUBECONFIG"):
        found = Cluster(Path(named), ours=Path(named) == NODE.kubeconfig)
    elif running(NODE):
        found = Cluster(NODE.kubeconfig, ours=True)
    else:
        _missing("a Kubernetes cluster that runs pods", "make cluster")
    answer = found.try_kubectl("get", "nodes", "-o", "name", timeout=30)
    if answer.returncode:
        raise ClusterError(f"the cluster of {found.kubeconfig} does not answer: {answer.stderr.strip()}")
    return found


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace of the test's own, deleted after it."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def api_namespace(api_server: Kubernetes) -> Callable[[], str]:
    """Makes namespaces on the API server. Deleting them would take a controller; all is thrown away in the end."""

    def make() -> str:
        name = f"test-{uuid.uuid4().hex[:8]}"
        api_server.kubectl("create", "namespace", name)
        return name

    return make


def _missing(what: str, how: str) -> NoReturn:
    """Skip, naming what is needed and how to get it; in CI a missing thing is a failure."""
    text = f"needs {what}; get it with: {how}"
    if os.environ.get("CI") == "true":
        pytest.fail(text, pytrace=False)
    pytest.skip(text)
