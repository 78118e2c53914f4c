"""kind, if it is installed and works. It needs no root and builds nothing, but needs a registry for its node image."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

from debian import log

from mpiboot.kube.blocking import Client

from .errors import ClusterError

if TYPE_CHECKING:
    from .home import Home

NAME = "mpiboot"
OK = 200
TAKES = 300  # seconds at most, the download of its node image included


def wanted() -> bool:
    """Whether to try kind: it and docker, whose images it loads, are installed. MPIBOOT_CLUSTER=built forbids it."""
    installed = all(shutil.which(program) for program in ("kind", "docker"))
    return installed and os.environ.get("MPIBOOT_CLUSTER", "kind") == "kind"


def up(home: Home) -> bool:
    """True when kind started a cluster. If it cannot, a line says why, and the caller builds a node instead."""
    down(home)  # an old cluster of this name may exist whose folder was removed
    home.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    (home.path / "kind").touch()
    command = ["kind", "create", "cluster", "--name", NAME, "--kubeconfig", str(home.kubeconfig), "--wait", "120s"]
    try:
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TAKES)
        if done.returncode == 0:
            return True
        why = (done.stdout.strip().splitlines() or ["it printed nothing"])[-1]
    except subprocess.TimeoutExpired:
        why = f"not done after {TAKES} s"
    log(f"kind does not work here ({why}); building a node instead")
    down(home)
    return False


def runs(home: Home) -> bool:
    """True when kind started the cluster of this folder."""
    return (home.path / "kind").exists()


def answers(home: Home) -> bool:
    """True when its API server answers: for example, a reboot may have stopped its container."""
    return Client.of(home.kubeconfig).get("/readyz").status == OK


def gateway() -> str:
    """This machine's address in the network of kind's nodes; pods reach it there."""
    command = ["docker", "network", "inspect", "kind", "--format", "{{range .IPAM.Config}}{{println .Gateway}}{{end}}"]
    done = subprocess.run(command, text=True, capture_output=True)
    found = [word for word in done.stdout.split() if "." in word]  # the network has an IPv6 gateway as well
    if not found:
        raise ClusterError(f"the Docker network of kind has no address of this machine: {done.stderr.strip()}")
    return found[0]


def down(home: Home) -> None:
    """Delete the cluster. The user's own kubeconfig is not touched."""
    if shutil.which("kind"):
        command = ["kind", "delete", "cluster", "--name", NAME, "--kubeconfig", str(home.kubeconfig)]
        subprocess.run(command, capture_output=True)
    shutil.rmtree(home.path, ignore_errors=True)


def load(image: str) -> None:
    """Copy an image of the Docker engine to the cluster."""
    done = subprocess.run(["kind", "load", "docker-image", "--name", NAME, image], text=True, capture_output=True)
    if done.returncode:
        raise ClusterError(f"kind refused the image {image}: {done.stderr.strip()[-500:]}")
