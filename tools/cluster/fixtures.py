"""Fixtures of tests that need Kubernetes: `api_server`, one a session, and `cluster`, a node that all tests share."""

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
from .home import NODE, Home
from .node import host, running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def kubectl() -> str:
    """The kubectl that was built, or else the machine's own: with kind, none is built."""
    built = versions.program("kubectl")
    return built if Path(built).exists() else shutil.which("kubectl") or built


@dataclass(frozen=True)
class Kubernetes:
    """A cluster that answers, and the administrator's access to it."""

    kubeconfig: Path

    def kubectl(self, *arguments: str, given: str | None = None, check: bool = True, timeout: float = 120) -> str:
        """Run kubectl with `given` as its standard input and return what it prints. An error fails the test."""
        done = self.try_kubectl(*arguments, given=given, timeout=timeout)
        if check and done.returncode:
            error = done.stderr.strip()
            pytest.fail(f"kubectl {' '.join(arguments)} ended with {done.returncode}: {error}", pytrace=False)
        return done.stdout

    def try_kubectl(self, *arguments: str, given: str | None = None,
                    timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """Run kubectl for a test that expects an error."""
        command = [kubectl(), "--kubeconfig", str(self.kubeconfig), *arguments]
        return subprocess.run(command, input=given, text=True, capture_output=True, timeout=timeout)


@dataclass(frozen=True)
class Cluster(Kubernetes):
    """A cluster that runs pods."""

    ours: bool  # whether `make cluster` started it; else $KUBECONFIG names it

    @property
    def host(self) -> str:
        """The address at which pods reach this machine. Some tests run an operator here as a process."""
        return host(NODE)

    def load(self, image: str) -> str:
        """Copy the image from the Docker engine to the node, and return its name. Other clusters pull it."""
        if self.ours:
            images.load(image)
        return image


@contextlib.contextmanager
def started(home: Home) -> Iterator[Kubernetes]:
    """Run an API server for the length of a `with` block."""
    try:
        api.up(home, dies_with_us=True)
        yield Kubernetes(home.kubeconfig)
    finally:
        api.down(home)


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubernetes]:
    """An API server with etcd and nothing else: no controller runs Jobs, makes service accounts or deletes orphans."""
    if absent := api.missing():
        _missing(f"{', '.join(absent)} of a Kubernetes API server", ".venv/bin/python tools/cluster build api")
    with started(Home(tmp_path_factory.mktemp("api-server"))) as kubernetes:
        yield kubernetes


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """A cluster that runs pods: that of $KUBECONFIG, or else the node of `make cluster`."""
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
    """A new namespace, deleted after the test."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def api_namespace(api_server: Kubernetes) -> Callable[[], str]:
    """Makes namespaces on the API server. Only a controller could delete them; they go with the server."""

    def make() -> str:
        name = f"test-{uuid.uuid4().hex[:8]}"
        api_server.kubectl("create", "namespace", name)
        return name

    return make


def _missing(what: str, how: str) -> NoReturn:
    """Skip the test and name what it needs and how to get it. In CI the test fails instead."""
    text = f"needs {what}; get it with: {how}"
    if os.environ.get("CI") == "true":
        pytest.fail(text, pytrace=False)
    pytest.skip(text)
