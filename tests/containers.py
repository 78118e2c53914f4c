"""Containers for one command, and the options of the strictest cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import docker

HARDENED: dict[str, Any] = {
    "user": "12345:0",
    "cap_drop": ["ALL"],
    "security_opt": ["no-new-privileges"],
    "read_only": True,
    "tmpfs": {"/tmp": ""},
}


def run(engine: docker.DockerClient, image: str, *command: str, **options: Any) -> tuple[int, str]:  # noqa: ANN401 (docker-py's)
    """One command in a container of an image, which is gone after it: its exit code and both its streams."""
    container = engine.containers.create(image, list(command), network_mode="none", **options)
    try:
        container.start()
        code = int(container.wait(timeout=600)["StatusCode"])
        return code, container.logs().decode(errors="replace")
    finally:
        container.remove(force=True)
