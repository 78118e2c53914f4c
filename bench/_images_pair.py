"""Two containers of an image that reach each other by SSH, without mpiboot."""

from __future__ import annotations

import io
import os
import tarfile
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from mpiboot.ssh.keys import generate

if TYPE_CHECKING:
    from collections.abc import Iterator

    import docker
    from docker.models.containers import Container

SSHD = ["/usr/sbin/sshd", "-De", "-f", "/home/mpiuser/.sshd_config"]
WAIT = "for i in $(seq 100); do ssh w1 true && exit 0; sleep 0.1; done; exit 1"


@contextmanager
def two_containers(engine: docker.DockerClient, image: str) -> Iterator[Container]:
    """Start the containers w0 and w1, and yield w0, from which mpirun reaches w1. Both are removed afterwards."""
    with ExitStack() as stack:
        network = engine.networks.create(f"mpiboot-bench-{os.getpid()}-{os.urandom(3).hex()}")
        stack.callback(network.remove)
        keys = _keys()
        pair = []
        for name in ("w0", "w1"):
            container = engine.containers.create(image, SSHD, hostname=name, user="mpiuser", entrypoint="")
            stack.callback(container.remove, force=True)
            network.connect(container, aliases=[name])
            container.put_archive("/home/mpiuser", keys)
            container.start()
            pair.append(container)
        code, output = execute(pair[0], ["sh", "-c", WAIT])
        if code:
            raise RuntimeError(f"{image}: no ssh between two containers: {output[-1000:]}")
        yield pair[0]


def execute(container: Container, command: list[str]) -> tuple[int, str]:
    """Exit code and output of a command in a running container."""
    code, output = container.exec_run(command)
    assert isinstance(output, bytes)
    return int(code or 0), output.decode(errors="replace")


def _keys() -> bytes:
    """A tar of .ssh with one key pair for hosts and clients, as mpi-operator makes it."""
    material = generate()
    files = {"id_rsa": material.client_private, "authorized_keys": material.client_public}
    files["id_rsa.pub"] = material.client_public
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(f".ssh/{name}")
            info.size, info.mode, info.uid, info.gid = len(text.encode()), 0o600, 1000, 1000
            tar.addfile(info, io.BytesIO(text.encode()))
    return stream.getvalue()
