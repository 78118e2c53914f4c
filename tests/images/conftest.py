"""What the tests of images share: our Dockerfile, and containers that go when the test ends."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from mpiboot.images.dockerfile import DOCKERFILE
from tests import containers

if TYPE_CHECKING:
    from collections.abc import Callable

    import docker


@pytest.fixture(scope="session")
def dockerfile() -> str:
    return DOCKERFILE.read_text()


@pytest.fixture
def run(docker_engine: docker.DockerClient) -> Callable[..., tuple[int, str]]:
    """One command in a container of an image: `run(image, "true", user="0")` gives its exit code and output."""
    return partial(containers.run, docker_engine)
