"""Tests whether a user's image can be a base before the build starts, so that "not supported" comes at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.images.build.one_command import output_of
from mpiboot.images.engine_errors import is_about_the_program, reason
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    import docker

SUPPORTED = "Debian 12 or newer, or Ubuntu 24.04 or newer"
OLDEST = {"debian": (12,), "ubuntu": (24, 4)}  # the first with Python 3.11
SYSTEM_SCRIPT = "cat /etc/os-release; command -v apt-get"


def probe(engine: docker.DockerClient, image: str) -> None:
    """Raise UserError if mpiboot cannot add SSH and MPI to `image`. The engine pulls the image if it lacks it."""
    from docker.errors import APIError, ContainerError, ImageNotFound

    try:
        output = output_of(engine, image, ["/bin/sh", "-c", SYSTEM_SCRIPT], user="0")
    except ImageNotFound as error:
        raise UserError(f"{image}: the engine has no such image, and no registry that it asked has it") from error
    except ContainerError as error:
        complaint = "is not a Debian or Ubuntu image (it has no apt-get)"
        raise UserError(f"{image} {complaint}; the base must be {SUPPORTED}") from error
    except APIError as error:
        about_shell = is_about_the_program(error)
        failed = "/bin/sh does not start in it" if about_shell else "the engine does not start a container of it"
        raise UserError(f"{image}: {failed} ({reason(error)}); the base must be {SUPPORTED}") from error
    unsupported = unsupported_reason(output)
    if unsupported:
        raise UserError(f"{image} {unsupported}")


def unsupported_reason(facts: str) -> str | None:
    """Why an image with this os-release cannot be a base; None if it can."""
    lines = (line.partition("=") for line in facts.splitlines())
    release = {key: value.strip('"') for key, _, value in lines}
    name = release.get("PRETTY_NAME", "an unknown system")
    families = [release.get("ID", ""), *release.get("ID_LIKE", "").split()]
    family = next((word for word in families if word in OLDEST), None)
    if family is None:
        return f"is {name}; the base must be {SUPPORTED}"
    if release.get("ID") != family:
        return None  # a derivative counts its own versions: only the build shows whether it works
    try:
        version = tuple(int(part) for part in release["VERSION_ID"].split("."))
    except (KeyError, ValueError):
        return None  # testing and unstable have no number
    return f"is {name}, which is too old; the base must be {SUPPORTED}" if version < OLDEST[family] else None
