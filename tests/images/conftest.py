"""What the tests of images share: our Dockerfile, and containers that go when the test ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.images.stages import DOCKERFILE

if TYPE_CHECKING:
    from collections.abc import Callable

    import docker

@pytest.fixture(scope="session")
def dockerfile() -> str:
    return DOCKERFILE.read_text()


@pytest.fixture
def run(docker_engine: docker.DockerClient) -> Callable[..., tuple[int, str]]:
    """Runs one command in a container of an image, which is gone after it: its exit code and both its streams."""

    def one(image: str, *command: str, **options: Any) -> tuple[int, str]:  # noqa: ANN401 (docker-py's options)
        container = docker_engine.containers.create(image, list(command), network_mode="none", **options)
        try:
            container.start()
            code = int(container.wait(timeout=120)["StatusCode"])
            return code, container.logs().decode(errors="replace")
        finally:
            container.remove(force=True)

    return one
