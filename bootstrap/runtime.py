"""Which MPI this is, as it says itself. Pure, but for `program`, which looks into PATH."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.bootstrap import spawn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpiboot.bootstrap.hostfile import Dialect

LAUNCHERS = ("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "mpirun.openmpi", "mpiexec.openmpi",
             "mpirun.mpich", "mpiexec.mpich")  # fmt: skip


class Runtime(NamedTuple):
    """The family as `MPIBOOT_IMPLEMENTATION` calls it, or empty where nobody knows, and the version."""

    family: str
    version: str

    @property
    def dialect(self) -> Dialect:
        return "hydra" if self.family in ("MPICH", "Intel") else "openmpi"

    def __str__(self) -> str:
        names = {"OpenMPI": "Open MPI", "MPICH": "MPICH", "Intel": "Intel MPI", "": "no known MPI"}
        return f"{names[self.family]} {self.version}".strip()


UNKNOWN = Runtime("", "")


def identify(text: str) -> Runtime:
    """The runtime behind the output of `mpirun --version`."""
    for family, pattern in _SAYS.items():
        found = pattern.search(text)
        if found:
            return Runtime(family, found[1])
    return UNKNOWN


def program(command: Sequence[str], path: str) -> str:
    """The mpirun that the command is, or that its scripts would find; empty if there is none."""
    if command and command[0].rpartition("/")[2] in LAUNCHERS:
        return command[0]
    for name in ("mpirun", "mpiexec"):
        try:
            return spawn.find(name, path)
        except (spawn.NotFoundError, spawn.NotExecutableError):
            continue
    return ""


# In this order: Intel's mpiexec is a Hydra, too.
_SAYS = {
    "OpenMPI": re.compile(r"\((?:Open MPI|OpenRTE|PRRTE)\)\s+v?(\S+)"),
    "Intel": re.compile(r"Intel\(R\) MPI Library.*?Version\s+(\S+(?: Update \d+)?)", re.DOTALL),
    "MPICH": re.compile(r"HYDRA build details:.*?Version:\s+(\S+)", re.DOTALL),
}
