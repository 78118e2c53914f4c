"""kind, where it is there and works: it needs no root and builds nothing, but a registry that serves its node image."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

from debian import say

from .client import Client
from .errors import ClusterError

if TYPE_CHECKING:
    from .places import Home

NAME = "mpiboot"
OK = 200
TAKES = 300  # seconds at most, the download of its node image included


def wanted() -> bool:
    """True when kind shall be tried: on Docker, whose images it gets. MPIBOOT_CLUSTER=built never asks it."""
    there = all(shutil.which(program) for program in ("kind", "docker"))
    return there and os.environ.get("MPIBOOT_CLUSTER", "kind") == "kind"


def up(home: Home) -> bool:
    """True when a cluster of kind runs. Its refusal is said, and is no error: there is another way."""
    down(home)  # one of this name may be left from a home that is gone
    home.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    (home.path / "kind").touch()
    command = ["kind", "create", "cluster", "--name", NAME, "--kubeconfig", str(home.kubeconfig), "--wait", "120s"]
    try:
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TAKES)
        if done.returncode == 0:
            return True
        why = (done.stdout.strip().splitlines() or ["no word"])[-1]
    except subprocess.TimeoutExpired:
        why = f"nothing after {TAKES} s"
    say(f"kind does not work here ({why}); building a node instead")
    down(home)
    return False


def runs(home: Home) -> bool:
    """True when this home is a cluster of kind."""
    return (home.path / "kind").exists()


def answers(home: Home) -> bool:
    """True when its API server does: its container may have been stopped since, by a reboot for one."""
    return Client(home.kubeconfig).get("/readyz").status == OK


def gateway() -> str:
    """This machine's address in the network of kind's nodes; pods reach it there."""
    asked = ["docker", "network", "inspect", "kind", "--format", "{{range .IPAM.Config}}{{println .Gateway}}{{end}}"]
    done = subprocess.run(asked, text=True, capture_output=True)
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
    """Copy an image of the Docker engine into it."""
    done = subprocess.run(["kind", "load", "docker-image", "--name", NAME, image], text=True, capture_output=True)
    if done.returncode:
        raise ClusterError(f"kind did not take the image {image}: {done.stderr.strip()[-500:]}")
