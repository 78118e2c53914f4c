"""What users of the openmpi package have before they begin: a Secret made with ssh-keygen; and an image with boto3."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cluster import network

from mpiboot.containers.client import docker_cli
from tests.conftest import missing
from tests.s3 import running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cluster.fixtures import Cluster

    from tests.s3 import Store
    from tests.systems.shell import Shell

# boto3 and what it needs: plain Python, so the tests' own copies do in an image, too.
BOTO3 = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six", "urllib3")
DOCKERFILE = "FROM mpiboot/openmpi:latest\nCOPY packages/ /usr/lib/python3/dist-packages/\n"
MAKE_SECRET = """
    ssh-keygen -q -t {type} -N "" -f id_rsa
    kubectl create secret generic openmpi-secret --from-file=id_rsa --from-file=id_rsa.pub \
        --from-file=authorized_keys=id_rsa.pub
"""


@pytest.fixture
def with_secret(bare_shell: Shell) -> Callable[[str], Shell]:
    """A shell in a namespace where `openmpi-secret` is, with keys of this type."""

    def make(key_type: str = "rsa") -> Shell:
        bare_shell(MAKE_SECRET.format(type=key_type))
        return bare_shell

    return make


@pytest.fixture(scope="module")
def store(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """An S3 server that pods can reach."""
    if not cluster.ours:
        missing("a node that pods and this machine share", "unset KUBECONFIG; make cluster")
    with running(network.NODE, tmp_path_factory.mktemp("s3")) as store:
        yield store


@pytest.fixture(scope="module")
def image_with_boto3(
    image: Callable[[str], str], cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """Our image as docs/launcher.md extends it, but without a download."""
    image("openmpi")
    context = tmp_path_factory.mktemp("boto3")
    (context / "Dockerfile").write_text(DOCKERFILE)
    for name in BOTO3:
        found = importlib.util.find_spec(name)
        if found is None or found.origin is None:
            missing(f"the Python package {name}", "make setup")
        source, target = Path(found.origin), context / "packages" / name
        if source.name == "__init__.py":
            shutil.copytree(source.parent, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, context / "packages")
    tag = "mpiboot-test/openmpi-s3:latest"
    command = [docker_cli(), "build", "--quiet", "--tag", tag, str(context)]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return cluster.load(tag)
