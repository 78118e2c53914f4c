"""Real sshds on loopback addresses. Each is a worker of one job."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.harness import Unavailable
from mpiboot.ssh import keys
from mpiboot.ssh.server import Server, configuration

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PORT = 22022  # free, because no other program uses these addresses
PATIENCE = 120.0


@dataclass(frozen=True)
class Worker:
    """One sshd: its name in the hostfile and the address on which it listens."""

    name: str
    address: str

    @property
    def line(self) -> str:
        return f"{self.name} {self.address} {PORT}\n"


def worker(index: int, network: int = 1) -> Worker:
    return Worker(f"bench-worker-{index}", f"127.{network}.{index // 250 + 1}.{index % 250 + 1}")


@dataclass(frozen=True)
class Job:
    """The files that are mounted into a launcher: a hostfile and keys. The benchmark writes the addresses file."""

    hostfile: Path
    ssh_dir: Path
    addresses: Path

    def publish(self, text: str) -> None:
        """Replace the addresses file at once, as engines do."""
        fresh = self.addresses.with_suffix(".new")
        fresh.write_text(text)
        fresh.replace(self.addresses)


def job(directory: Path, workers: int, slots: int = 1) -> Job:
    """Write the files of a job. The addresses of its workers are published later."""
    directory.mkdir(parents=True)
    material = keys.generate()
    ssh_dir = directory / "ssh"
    ssh_dir.mkdir(mode=0o700)
    for name, text, mode in (
        ("id_rsa", material.client_private, 0o600),
        ("id_rsa.pub", material.client_public, 0o444),
        ("authorized_keys", material.client_public, 0o444),
        ("known_hosts", f"* {material.host_public}\n", 0o444),
        ("host_key", material.host_private, 0o600),
    ):
        (ssh_dir / name).write_text(text)
        (ssh_dir / name).chmod(mode)
    hostfile = directory / "hostfile"
    hostfile.write_text("".join(f"{worker(i).name} slots={slots}\n" for i in range(workers)))
    return Job(hostfile, ssh_dir, directory / "addresses")


@contextmanager
def running(of: Job, workers: int) -> Iterator[list[Worker]]:
    """Start this number of sshds and wait until all accept connections. They end after the `with` block."""
    program = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin")
    if not program:
        raise Unavailable("sshd; get it with: make setup")
    found = [worker(i) for i in range(workers)]
    processes = []
    try:
        for each in found:
            config = of.ssh_dir / f"sshd-{each.name}"
            paths = str(of.ssh_dir / "host_key"), str(of.ssh_dir / "authorized_keys")
            config.write_text(configuration(Server(PORT, *paths, {}, each.address)))
            command = [program, "-D", "-e", "-f", str(config)]
            processes.append(subprocess.Popen(command, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL))
        for each in found:
            _until_it_listens(each)
        yield found
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def _until_it_listens(each: Worker) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex((each.address, PORT)) == 0:
                return
        time.sleep(0.01)
    raise RuntimeError(f"the sshd at {each.address} never listened")
