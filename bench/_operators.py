"""Our operator and mpi-operator as processes, each for a namespace of its own."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

from bench._cluster import NODE, node, ports, versions, wait
from bench.harness import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

TUNED = ("-kube-api-qps=2000", "-kube-api-burst=4000", "-threadiness=16", "-controller-queue-rate-limit=2000",
         "-controller-queue-burst=4000")
PEERS_PORT = 8080


@contextlib.contextmanager
def ours(namespace: str) -> Iterator[None]:
    """Our operator with its default settings. Pods reach its check-in service at the node's address."""
    address = node.host(NODE)
    port, = ports.free(address, 1)
    with _running([
            sys.executable, "-m", "mpiboot", "operator", "--kubeconfig", str(NODE.kubeconfig), "--namespace", namespace,
            "--lock-namespace", namespace, "--listen", address, "--checkin-port", str(port),
            "--checkin-urls", f"http://{address}:{port}", "--monitoring-port", "0", "--peer-leases", ""]):
        yield


@contextlib.contextmanager
def peer(namespace: str, *flags: str) -> Iterator[None]:
    """mpi-operator, with its defaults unless `flags` change them."""
    # It always listens on this port, and ends if the port is in use.
    if _listens(PEERS_PORT):
        raise Unavailable(f"the free TCP port {PEERS_PORT} that mpi-operator needs")
    with _running([versions.program("mpi-operator"), "-kubeConfig", str(NODE.kubeconfig), "-namespace", namespace,
                   "-lock-namespace", namespace, *flags]) as process:
        wait("mpi-operator's start", lambda: _listens(PEERS_PORT) or process.poll() is not None, 30)
        yield


@contextlib.contextmanager
def kwok() -> Iterator[None]:
    """Run kwok, which plays the kubelet of fake nodes."""
    with _running([versions.program("kwok"), "--kubeconfig", str(NODE.kubeconfig), "--manage-all-nodes=false",
                   "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake", "--server-address", ""]):
        yield


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


@contextlib.contextmanager
def _running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL,
                                   env={name: value for name, value in os.environ.items() if name != "KUBECONFIG"})
        try:
            yield process
            if process.poll() is not None:
                output.seek(0)
                raise RuntimeError(f"{command[0]} ended by itself ({process.returncode}): {output.read()[-2000:]}")
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
