"""Real workers on loopback addresses, real launches against them, and hosts that misbehave in every way."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

import pytest

from mpiboot.ssh.keys import generate
from tests.bootstrap.processes import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tests.bootstrap.processes import Process

PORT = 2222

_numbers = count()


def fresh_address() -> str:
    """A loopback address that no other test uses: 127.x.y.z, told apart by this process and a counter."""
    number, pid = next(_numbers), os.getpid()
    return f"127.{64 + pid % 128}.{1 + (pid // 128 + number // 254) % 250}.{1 + number % 254}"


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Runs `mpiboot ...` in the background; whatever still runs at the end of the test is ended."""
    runner = Run(tmp_path)
    yield runner
    runner.end()


@dataclass(frozen=True)
class Keys:
    """Directories as a job's Secret is mounted into launcher and workers."""

    launcher: Path
    worker: Path


def write_keys(directory: Path) -> Keys:
    material = generate()
    keys = Keys(directory / "launcher-keys", directory / "worker-keys")
    keys.launcher.mkdir()
    keys.worker.mkdir()
    (keys.launcher / "id_rsa").write_text(material.client_private)
    (keys.launcher / "id_rsa.pub").write_text(material.client_public)
    (keys.launcher / "known_hosts").write_text(f"* {material.host_public}")
    (keys.worker / "id_rsa").write_text(material.host_private)
    (keys.worker / "id_rsa.pub").write_text(material.host_public)
    (keys.worker / "authorized_keys").write_text(material.client_public)
    return keys


@dataclass
class Job:
    """Two or more workers with names that nothing resolves, and the files that tell a launcher about them."""

    run: Run
    directory: Path
    keys: Keys
    runtime: Path | None
    addresses: list[str]
    slots: int = 2
    workers: dict[int, Process] = field(default_factory=dict)
    ports: dict[int, int] = field(default_factory=dict)

    def name(self, index: int) -> str:
        return f"pi-worker-{index}.pi.default.svc"

    @property
    def names(self) -> list[str]:
        return [self.name(index) for index in range(len(self.addresses))]

    @property
    def hostfile(self) -> Path:
        return self.directory / "hostfile"

    @property
    def address_file(self) -> Path:
        return self.directory / "addresses"

    @property
    def env(self) -> dict[str, str]:
        """What a container of this runtime has."""
        if self.runtime is None:
            return {}
        path = f"{self.runtime}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        prefix = self.runtime.parent
        # Two workers share this machine's few cores; a rank may run as root here.
        usual = {"PRTE_MCA_hwloc_default_binding_policy": "none", "FI_PROVIDER": "tcp", "I_MPI_ROOT": str(prefix)}
        # ... which may have a dozen networks of containers, too.
        usual |= {"OMPI_MCA_btl_tcp_if_include": "lo", "FI_TCP_IFACE": "lo"}
        # ... and be so busy that a rank needs longer than a second to do something about SIGTERM.
        usual["PRTE_MCA_odls_base_sigkill_timeout"] = "30"
        return {"PATH": path, "LD_LIBRARY_PATH": str(prefix / "lib"), **usual}

    def write(self) -> None:
        self.hostfile.write_text("".join(f"{name} slots={self.slots}\n" for name in self.names))
        self.tell(*range(len(self.addresses)))

    def tell(self, *indexes: int) -> None:
        """Write the addresses of these workers, as engines and the kubelet do: whole or not at all."""
        lines = [f"{self.name(i)} {self.addresses[i]} {self.ports.get(i, PORT)}\n" for i in indexes]
        beside = self.directory / "addresses.new"
        beside.write_text("".join(lines))
        beside.replace(self.address_file)

    def start(self, *indexes: int, env: Mapping[str, str] | None = None) -> None:
        """Start these workers and wait until they listen."""
        for index in indexes:
            # What ranks of one host share is a file named by the host, which is the same for both workers here.
            shared = self.directory / f"shared-{index}"
            shared.mkdir(exist_ok=True)
            own = {"OMPI_MCA_btl_sm_backing_directory": str(shared)} if self.runtime else {}
            self.workers[index] = self.run(
                "worker", "--ssh-dir", self.keys.worker, "--listen", self.addresses[index],
                "--port", self.ports.get(index, PORT), env={**self.env, **own, **(env or {})},
            )  # fmt: skip
        for index in indexes:
            self.workers[index].says("SSH listens")

    def stop(self, index: int) -> None:
        worker = self.workers.pop(index)
        worker.kill()
        worker.ends()

    def many(self, count: int) -> None:
        """This many workers with one slot each. In truth they are one sshd, which listens on all addresses."""
        first = fresh_address().rpartition(".")[0]
        self.addresses, self.slots = [f"{first}.{number + 1}" for number in range(count)], 1
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = int(free.getsockname()[1])
        self.ports = dict.fromkeys(range(count), port)
        self.write()
        self.workers[0] = self.run("worker", "--ssh-dir", self.keys.worker, "--port", port, env=self.env)
        self.workers[0].says("SSH listens")

    def command(self, name: str, *options: object, env: Mapping[str, str] | None = None) -> Process:
        files = ("--ssh-dir", self.keys.launcher, "--hostfile", self.hostfile, "--addresses", self.address_file)
        return self.run(name, *files, *options, env={**self.env, **(env or {})})

    def launch(self, *words: object, options: tuple[object, ...] = (), env: Mapping[str, str] | None = None) -> Process:
        return self.command("launch", *options, "--", *words, env=env)


@pytest.fixture(scope="session")
def session_keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return write_keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def job(run: Run, tmp_path: Path, session_keys: Keys, program: Callable[[str], str]) -> Job:
    """A job of two workers that are not started yet; no MPI."""
    program("sshd")
    made = Job(run, tmp_path, session_keys, None, [fresh_address(), fresh_address()])
    made.write()
    return made


@pytest.fixture(params=["openmpi", "mpich", "intel"])
def any_mpi(request: pytest.FixtureRequest, job: Job, runtime: Callable[[str], Path]) -> Job:
    """Two running workers, with each of the three runtimes in turn."""
    job.runtime = runtime(request.param)
    job.start(0, 1)
    return job


@pytest.fixture
def openmpi(job: Job, runtime: Callable[[str], Path]) -> Job:
    """Two running workers with Open MPI."""
    job.runtime = runtime("openmpi")
    job.start(0, 1)
    return job


@dataclass
class Server:
    """A host that is no SSH server; `handle` decides what it does with a connection."""

    address: str
    port: int
    listener: socket.socket
    connections: int = 0


@pytest.fixture
def misbehaving() -> Iterator[Callable[..., Server]]:
    """`misbehaving(handle)` listens on an address of its own and hands every connection to `handle(socket)`."""
    servers: list[Server] = []

    def serve(handle: Callable[[socket.socket], object], address: str = "", backlog: int = 64) -> Server:
        listener = socket.create_server((address or fresh_address(), PORT), backlog=backlog)
        server = Server(listener.getsockname()[0], PORT, listener)

        def serve_one(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                handle(connection)

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                server.connections += 1
                threading.Thread(target=serve_one, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        servers.append(server)
        return server

    yield serve
    for server in servers:
        with suppress(OSError):
            server.listener.shutdown(socket.SHUT_RDWR)
        server.listener.close()
