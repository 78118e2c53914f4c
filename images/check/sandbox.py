"""Containers on a separate network. The sandbox removes all of them, however the check ends."""

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

from mpiboot.job.job_annotations import PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import docker
    from docker.models.containers import Container

# On every container, network and volume of a check: `docker ps -a --filter label=mpiboot.dev/check` shows leftovers.
LABEL = f"{PREFIX}check"
OWNER_LABEL = f"{PREFIX}check-pid"


# An honest image needs a small part of this: 4 ranks add up a kilobyte each. A hostile one must not use up the machine.
MEMORY = "2g"
PROCESSES = 4096  # threads count, and some libraries start one for each core
CPUS = 2


class ClosedError(Exception):
    """The check has ended, so the sandbox makes nothing new."""


@dataclass(frozen=True)
class File:
    """A file to put into a container, owned by root."""

    text: str
    mode: int = 0o444


@dataclass(frozen=True)
class ContainerSpec:
    """A container to make. `files` maps each directory to what is in it; each directory becomes a volume.

    An entrypoint replaces the image's entrypoint and command, as `command:` of a pod does.
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
    """Makes containers, and removes all of them on `close`. Several threads may use it at once."""

    def __init__(self, client: docker.DockerClient) -> None:
        self._client = client
        self.run = secrets.token_hex(4)
        self._labels = {LABEL: self.run, OWNER_LABEL: str(os.getpid())}
        self._state = threading.Condition()
        self._making = 0
        self._closed = False
        self._network: str | None = None
        self._limits: Mapping[str, Any] = {}

    def open(self) -> None:
        """Make the network. It is internal: no connection leaves it, and none from outside reaches the sshd."""
        with self._creation():
            self._limits = limits(self._client.info())
            self._network = self._client.networks.create(self.host("net"), internal=True, labels=self._labels).name

    def create(self, spec: ContainerSpec) -> Container:
        """Make the container with its files, without a start."""
        from docker.types import Mount

        with self._creation():
            container = self._client.containers.create(
                spec.image,
                command=spec.command,
                entrypoint=spec.entrypoint,
                name=self.host(spec.name),
                hostname=self.host(spec.name),
                user=spec.user,
                network=self._network,
                labels=self._labels,
                environment=dict(spec.environment),
                # Volumes, not bind mounts: the engine may be on another machine. no_copy: the volume hides what the
                # image has in that directory, as a mounted Secret does.
                mounts=[Mount(path, None, type="volume", no_copy=True, labels=self._labels) for path in spec.files],
                **self._limits,
                **spec.options,
            )
            for directory, files in spec.files.items():
                container.put_archive(directory, _archive(files))
            return container

    def start(self, container: Container) -> None:
        """Start what `create` made."""
        with self._creation():
            container.start()

    def remove(self, containers: Iterable[Container]) -> None:
        """Remove these containers now; commands that run in them fail."""
        for container in containers:
            _remove(container)

    def close(self) -> None:
        """Remove everything. It first waits for what other threads are making, to remove that too."""
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
        """The host name of the container of this name; the network resolves it."""
        return f"mpiboot-check-{self.run}-{name}"

    @contextlib.contextmanager
    def _creation(self) -> Iterator[None]:
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


def limits(engine: Mapping[str, Any]) -> dict[str, Any]:
    """Options that keep a container from using up the machine, as far as this engine has them (`docker info`)."""
    from docker.types import LogConfig

    found: dict[str, Any] = {"log_config": LogConfig(type="json-file", config={"max-size": "1m", "max-file": "1"})}
    if engine.get("MemoryLimit"):
        found["mem_limit"] = MEMORY
    if engine.get("MemoryLimit") and engine.get("SwapLimit"):
        found["memswap_limit"] = MEMORY
    if engine.get("PidsLimit"):
        found["pids_limit"] = PROCESSES
    if engine.get("CpuCfsQuota"):
        found["nano_cpus"] = min(CPUS, engine["NCPU"]) * 10**9
    return found


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
    # v removes the anonymous volumes too, which hold the keys.
    _quietly(lambda: container.remove(force=True, v=True))


def _quietly(remove: Callable[[], object]) -> None:
    from docker.errors import NotFound

    # Another thread may have removed it already.
    with contextlib.suppress(NotFound):
        remove()
