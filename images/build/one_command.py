"""Runs one command in a container of an image, and removes the container."""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import docker


def output_of(engine: docker.DockerClient, image: str, command: Sequence[str], user: str | None = None) -> str:
    """The command's output, of both streams. The command replaces the image's entrypoint and has no network.

    Raises ImageNotFound, ContainerError if the command fails, APIError if the engine does not start the command.
    """
    from docker.errors import NotFound

    name, program = f"mpiboot-look-{secrets.token_hex(6)}", list(command[:1])
    try:
        printed: bytes = engine.containers.run(
            image, list(command[1:]), entrypoint=program, name=name, user=user, network_mode="none", stderr=True
        )
    finally:
        # docker-py's own remove=True leaves a container that the engine did not start.
        with suppress(NotFound):
            engine.api.remove_container(name, force=True, v=True)
    return printed.decode(errors="replace")
