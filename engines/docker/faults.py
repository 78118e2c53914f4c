"""Errors of the engine as texts that a user can act on."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from docker.errors import APIError, DockerException
from requests.exceptions import RequestException

from mpiboot.engines.docker import labels
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docker import APIClient

    from mpiboot.engines.docker.podspec import ContainerSpec

CONFLICT = 409


class NotStartedError(UserError):
    """A container could not start; exit codes as a shell's."""

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.exit_code = exit_code


class EngineGoneError(UserError):
    """The engine went away under a running job."""

    exit_code = 1


@contextmanager
def of_engine(doing: str) -> Iterator[None]:
    """Any error of the engine that has no text of its own, and an engine that no longer answers."""
    try:
        yield
    except APIError as error:
        why = str(error.explanation or error)
        hint = "; remove unused networks: docker network prune" if "address pool" in why else ""
        raise UserError(f"the Docker engine failed while {doing}: {why}{hint}") from error
    except (RequestException, OSError) as error:
        text = f"the Docker engine stopped answering while {doing}"
        raise EngineGoneError(f"{text}; when it is back, see what is left of the job: mpiboot ps") from error


@contextmanager
def of_create(api: APIClient, spec: ContainerSpec) -> Iterator[None]:
    """Creating a container."""
    try:
        yield
    except APIError as error:
        if error.status_code == CONFLICT:
            raise _in_use(api, spec.name) from error
        _, missing, path = str(error.explanation).partition("bind source path does not exist: ")
        if missing:
            text = f"the Docker engine finds no {path.strip()} on its machine"
            why = "mpiboot itself runs in a container there, or --mount names a path that does not exist"
            raise UserError(f"{text}: {why}; without the current directory: --no-workdir") from error
        raise UserError(f"the engine refuses the container {spec.name}: {error.explanation or error}") from error


@contextmanager
def of_start(spec: ContainerSpec) -> Iterator[None]:
    """Starting a container."""
    try:
        yield
    except APIError as error:
        why = str(error.explanation or error)
        hint = ""
        if "could not select device driver" in why:
            hint = "; it asks for GPUs: install NVIDIA's container toolkit on the engine's machine, or drop the limit"
        code = 127 if "not found" in why or "no such file" in why else 126 if "permission denied" in why else 1
        raise NotStartedError(f"the container {spec.name} ({spec.image}) does not start: {why}{hint}", code) from error


def _in_use(api: APIClient, container: str) -> UserError:
    try:
        found = api.inspect_container(container)
    except DockerException:
        return UserError(f"the container name {container} was in use a moment ago; try again")
    owner = (found["Config"].get("Labels") or {}).get(labels.JOB)
    if owner is None:
        return UserError(f"a container named {container} exists and is not mpiboot's; use another name: --name")
    state = "is running" if found["State"].get("Running") else "has left containers behind"
    return UserError(f"a job named {owner} {state}; see: mpiboot ps, end it: mpiboot delete {owner}, or use --name")
