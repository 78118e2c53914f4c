"""The image under check, as the engine describes it; or an error if mpiboot cannot check it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiboot.images.contract import POINTS
from mpiboot.job.errors import UserError
from mpiboot.job.plan.sshd import OUR_ENTRYPOINT
from mpiboot.job.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    import docker


@dataclass(frozen=True)
class Image:
    """The engine's description. `size` is in bytes; `user` has the form of USER in the Dockerfile."""

    name: str
    id: str
    size: int
    architecture: str
    user: str
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    environment: Mapping[str, str]
    labels: Mapping[str, str]

    @property
    def is_ours(self) -> bool:
        """Whether its entrypoint starts the worker by itself."""
        # Then no command means `mpiboot worker`. docs/image-contract.md says what this changes.
        return self.entrypoint[:1] == (OUR_ENTRYPOINT,)


def find(client: docker.DockerClient, name: str) -> Image:
    """The image of that name in this engine."""
    from docker.errors import APIError, ImageNotFound

    try:
        attributes = client.images.get(name).attrs
    except ImageNotFound:
        raise UserError(_not_found(name, _tags(client))) from None
    except APIError as error:
        raise UserError(f"{name!r} is not the name of an image: {error.explanation}") from None
    except ValueError:  # docker-py refuses an empty name itself
        raise UserError("the name of the image is empty; give one like mpiboot/openmpi:latest") from None
    image = describe(name, attributes)
    engine = client.version()
    _refuse_foreign_machine(image, attributes.get("Os", "linux"), engine["Os"], engine["Arch"])
    return image


def without_shell(image: Image, why: str) -> UserError:
    """The error for an image without a shell: the check runs its commands by the shell, so it has nothing to report."""
    shell = POINTS["shell"]
    return UserError(f"{image.name}: the check needs /bin/sh, and /bin/sh does not start in it ({why}); {shell.fix}")


def describe(name: str, attributes: Mapping[str, Any]) -> Image:
    """Read the engine's description."""
    config = attributes.get("Config") or {}
    return Image(
        name=name,
        id=attributes["Id"],
        size=attributes["Size"],
        architecture=attributes["Architecture"],
        user=config.get("User") or "",
        entrypoint=tuple(config.get("Entrypoint") or ()),
        command=tuple(config.get("Cmd") or ()),
        environment=dict(item.split("=", 1) for item in config.get("Env") or () if "=" in item),
        labels=config.get("Labels") or {},
    )


def _tags(client: docker.DockerClient) -> list[str]:
    return sorted(tag for image in client.images.list() for tag in image.tags)


def _not_found(name: str, tags: list[str]) -> str:
    near = did_you_mean(name, tags, cutoff=0.6)
    fetch = f"{near} Otherwise fetch" if near else "fetch"
    return f"this engine has no image {name}; {fetch} it with: docker pull {name}"


def _refuse_foreign_machine(image: Image, system: str, engine_system: str, engine_architecture: str) -> None:
    if (system, image.architecture) != (engine_system, engine_architecture):
        raise UserError(
            f"{image.name} is for {system}/{image.architecture}, and this engine runs {engine_system}/"
            f"{engine_architecture}; check it on such a machine, or build it for {engine_architecture}",
        )
