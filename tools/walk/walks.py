"""The two walks: each starts a traced process, gives it a job, and returns the files that it passed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cluster import api
from cluster.fixtures import kubectl
from cluster.home import Home

from mpiboot.ssh import keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

TRACED = Path(__file__).with_name("traced")
RUNTIME = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mpiboot" / "runtimes" / "openmpi"
PATIENCE = 60.0
JOB = """\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: job, namespace: default}
spec:
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: main, image: mpiboot/openmpi, command: [mpirun, hostname]}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: main, image: mpiboot/openmpi}]}}}
"""


class WalkError(Exception):
    """A process did not come to where the walk ends; the text is its output."""


def operator(tree: Path, folder: Path) -> list[str]:
    """From the MPIJob's arrival in the operator to the request for its first pod, with a real API server."""
    home, files = Home(folder / "cluster"), folder / "files"
    try:
        api.up(home, dies_with_us=True)
        _kubectl(home, "apply", "--server-side", "-f", str(tree / "deploy" / "crd.yaml"))
        _kubectl(home, "wait", "--for=condition=Established", "crd/mpijobs.kubeflow.org")
        port = _free_port()
        options = [f"--kubeconfig={home.kubeconfig}", "--listen=127.0.0.1", f"--monitoring-port={port}",
                   "--checkin-port=0", "--no-leader-election", "--peer-leases="]  # fmt: skip
        with _mpiboot(tree, folder / "log", "operator", *options, environment=_traced(tree, files, "pod")) as process:
            _until(lambda: _ready(port), process, folder / "log")
            process.send_signal(signal.SIGUSR1)
            _kubectl(home, "apply", "-f", "-", given=JOB)
            _until(files.exists, process, folder / "log")
    finally:
        api.down(home)
    return files.read_text().splitlines()


def launcher(tree: Path, folder: Path) -> list[str]:
    """From the start of `mpiboot launch` to the start of mpirun, with two real workers on loopback addresses."""
    files, port = folder / "files", _free_port()
    launchers, workers = _key_folders(folder)
    names = ["job-worker-0", "job-worker-1"]
    addresses = [f"127.{64 + os.getpid() % 128}.0.{number + 1}" for number in range(2)]
    (folder / "hostfile").write_text("".join(f"{name} slots=1\n" for name in names))
    lines = zip(names, addresses, strict=True)
    (folder / "addresses").write_text("".join(f"{name} {address} {port}\n" for name, address in lines))
    environment = {"PATH": f"{RUNTIME / 'bin'}:{os.environ['PATH']}:/usr/sbin", "LD_LIBRARY_PATH": f"{RUNTIME / 'lib'}"}
    with ExitStack() as stack:
        for address in addresses:
            log = folder / f"log-{address}"
            options = ["--ssh-dir", str(workers), "--listen", address, "--port", str(port)]
            worker = stack.enter_context(_mpiboot(tree, log, "worker", *options, environment=environment))
            _until(lambda log=log: "SSH listens" in log.read_text(), worker, log)  # type: ignore[misc]
        options = ["--ssh-dir", str(launchers), "--hostfile", str(folder / "hostfile"),
                   "--addresses", str(folder / "addresses"), "--", "mpirun", "hostname"]  # fmt: skip
        traced = {**environment, **_traced(tree, files, "hostname")}
        with _mpiboot(tree, folder / "log", "launch", *options, environment=traced) as process:
            _until(files.exists, process, folder / "log")
            process.wait(PATIENCE)
    return files.read_text().splitlines()


def _traced(tree: Path, files: Path, until: str) -> dict[str, str]:
    return {"MPIBOOT_WALK_FILE": str(files), "MPIBOOT_WALK_ROOT": str(tree), "MPIBOOT_WALK_UNTIL": until}


@contextmanager
def _mpiboot(
    tree: Path, log: Path, *arguments: str, environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """A command of the work tree's own mpiboot, ended afterwards."""
    path = {"PYTHONPATH": f"{TRACED}:{tree / 'src'}"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "mpiboot", *arguments], env={**os.environ, **environment, **path},
            stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        finally:
            process.kill()


def _until(true: Callable[[], object], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        if process.poll() is not None or time.monotonic() > deadline:
            raise WalkError(log.read_text(errors="replace").strip() or "no output")
        time.sleep(0.02)


def _ready(port: int) -> bool:
    """Whether the operator watches."""
    import requests

    try:
        return requests.get(f"http://127.0.0.1:{port}/readyz", timeout=PATIENCE).ok
    except requests.ConnectionError:
        return False


def _kubectl(home: Home, *arguments: str, given: str | None = None) -> None:
    command = [kubectl(), "--kubeconfig", str(home.kubeconfig), *arguments]
    done = subprocess.run(command, input=given, text=True, capture_output=True)
    if done.returncode:
        raise WalkError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")


def _key_folders(folder: Path) -> tuple[Path, Path]:
    """The launcher's keys and the workers', as a job's Secret is mounted into them."""
    made = keys.generate()
    launchers, workers = folder / "launcher", folder / "worker"
    contents = {
        launchers: {"id_rsa": made.client_private, "id_rsa.pub": made.client_public,
                    "known_hosts": f"* {made.host_public}"},
        workers: {"id_rsa": made.host_private, "id_rsa.pub": made.host_public, "authorized_keys": made.client_public},
    }  # fmt: skip
    for directory, files in contents.items():
        directory.mkdir()
        for name, text in files.items():
            (directory / name).write_text(text)
    return launchers, workers


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])
