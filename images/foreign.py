"""Images of the user's own as a base: looked into before the build, so that "not supported" comes at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    import docker

SUPPORTED = "Debian 12 or newer, or Ubuntu 24.04 or newer"
OLDEST = {"debian": (12,), "ubuntu": (24, 4)}  # the first with Python 3.11
LOOK = "cat /etc/os-release; command -v apt-get"


class ForeignError(UserError):
    """An image cannot be a base."""


def probe(engine: docker.DockerClient, image: str) -> None:
    """Nothing, if SSH and MPI can be added to `image`; it is pulled if the engine has not got it."""
    from docker.errors import APIError, ContainerError, ImageNotFound

    try:
        output = engine.containers.run(
            image, ["-c", LOOK], entrypoint="/bin/sh", user="0", network_mode="none", remove=True
        )
    except ImageNotFound as error:
        raise ForeignError(f"{image}: the engine has no such image, and no registry that it asked has it") from error
    except ContainerError as error:
        raise ForeignError(f"{image}: not a Debian or Ubuntu image (no apt-get); needs {SUPPORTED}") from error
    except APIError as error:
        raise ForeignError(f"{image}: cannot be looked into: {_reason(error)}") from error
    complaint = objection(output.decode(errors="replace"))
    if complaint:
        raise ForeignError(f"{image}: {complaint}")


def objection(facts: str) -> str | None:
    """Why an image with this os-release cannot be a base; None if it can."""
    lines = (line.partition("=") for line in facts.splitlines())
    release = {key: value.strip('"') for key, _, value in lines}
    name = release.get("PRETTY_NAME", "an unknown system")
    kin = [release.get("ID", ""), *release.get("ID_LIKE", "").split()]
    family = next((word for word in kin if word in OLDEST), None)
    if family is None:
        return f"is {name}; needs {SUPPORTED}"
    if release.get("ID") != family:
        return None  # a derivative counts its own versions: the build will tell
    try:
        version = tuple(int(part) for part in release["VERSION_ID"].split("."))
    except (KeyError, ValueError):
        return None  # testing and unstable have no number
    return f"is {name}, too old: needs {SUPPORTED}" if version < OLDEST[family] else None


def _reason(error: Exception) -> str:
    text = str(getattr(error, "explanation", None) or error)
    return text.strip().splitlines()[0][:200]
