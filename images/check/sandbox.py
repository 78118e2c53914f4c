"""Containers on a network of their own that are gone afterwards, however the check ends."""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import docker
    from docker.errors import APIError
    from docker.models.containers import Container

# On every container, network and volume of a check: `docker ps -a --filter label=mpiboot.dev/check` shows leftovers.
LABEL = "mpiboot.dev/check"
OWNER_LABEL = "mpiboot.dev/check-pid"


class ClosedError(Exception):
    """The check has been ended; nothing new is made."""


@dataclass(frozen=True)
class File:
    """A file to put into a container, owned by root."""

    text: str
    mode: int = 0o444


@dataclass(frozen=True)
class Wish:
    """A container to make. `files` maps each directory to what is in it: every one becomes a volume.

    An entrypoint takes the place of the image's entrypoint and command, as `command:` of a pod does.
    """

    name: str
    image: str
    entrypoint: list[str] | None = None
    command: list[str] | None = None
    user: str | None = None
    files: Mapping[str, Mapping[str, File]] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


class Sandbox:
    """Makes containers, and removes all of them on `close`. May be used by several threads at once."""

    def __init__(self, client: docker.DockerClient) -> None:
        self._client = client
        self.run = secrets.token_hex(4)
        self._labels = {LABEL: self.run, OWNER_LABEL: str(os.getpid())}
        self._state = threading.Condition()
        self._making = 0
        self._closed = False
        self._network: str | None = None

    def open(self) -> None:
        """Make the network. It is internal: the image under check reaches nobody, and nobody reaches its sshd."""
        with self._being_made():
            self._network = self._client.networks.create(self.host("net"), internal=True, labels=self._labels).name

    def create(self, wish: Wish) -> Container:
        """The container, with its files, not started."""
        from docker.types import Mount

        with self._being_made():
            container = self._client.containers.create(
                wish.image,
                command=wish.command,
                entrypoint=wish.entrypoint,
                name=self.host(wish.name),
                hostname=self.host(wish.name),
                user=wish.user,
                network=self._network,
                labels=self._labels,
                environment=dict(wish.environment),
                # Volumes, not bind mounts: the engine may be on another machine. no_copy: what the image has in that
                # directory is hidden, as below a mounted Secret.
                mounts=[Mount(path, None, type="volume", no_copy=True, labels=self._labels) for path in wish.files],
                **wish.options,
            )
            for directory, files in wish.files.items():
                container.put_archive(directory, _archive(files))
            return container

    def start(self, container: Container) -> None:
        """Start what `create` made."""
        with self._being_made():
            container.start()

    def remove(self, containers: Iterable[Container]) -> None:
        """End these now; whoever runs something in them gets an error."""
        for container in containers:
            _remove(container)

    def close(self) -> None:
        """Remove everything. What other threads are making right now is waited for, so that it goes too."""
        with self._state:
            self._closed = True
            self._state.wait_for(lambda: self._making == 0, timeout=30)
        mine: dict[str, str | list[str] | bool] = {"label": f"{LABEL}={self.run}"}
        containers = self._client.containers.list(all=True, filters=mine, ignore_removed=True)
        if containers:
            with ThreadPoolExecutor(len(containers)) as pool:
                list(pool.map(_remove, containers))
        for network in self._client.networks.list(filters=mine):
            _quietly(network.remove)
        for volume in self._client.volumes.list(filters=mine):
            _quietly(volume.remove)

    def host(self, name: str) -> str:
        """The host name of the container that a wish of this name makes; the network resolves it."""
        return f"mpiboot-check-{self.run}-{name}"

    @contextlib.contextmanager
    def _being_made(self) -> Iterator[None]:
        with self._state:
            if self._closed:
                raise ClosedError
            self._making += 1
        try:
            yield
        finally:
            with self._state:
                self._making -= 1
                self._state.notify_all()


def is_engines_own(error: APIError) -> bool:
    """Whether a container could not be made or started for a reason that has nothing to do with its image."""
    return bool(error.is_server_error()) and "OCI runtime" not in str(error.explanation)


def words_of(error: APIError) -> str:
    """What the engine says, without the names of the parts of it that pass it on."""
    return str(error.explanation).rpartition("container process: ")[2].removesuffix(": unknown")


def _archive(files: Mapping[str, File]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, file in files.items():
            member = tarfile.TarInfo(name)
            content = file.text.encode()
            member.size, member.mode = len(content), file.mode
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def _remove(container: Container) -> None:
    # v: with the anonymous volumes, which hold the keys.
    _quietly(lambda: container.remove(force=True, v=True))


def _quietly(remove: Callable[[], object]) -> None:
    from docker.errors import NotFound

    # Whoever removed it first did what was wanted.
    with contextlib.suppress(NotFound):
        remove()
