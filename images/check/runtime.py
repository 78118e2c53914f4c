"""Which MPI the image has, and how one says "two ranks on each host" to it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

# Where the checker's own files are in every container. No image has such a directory.
OUR_FILES = "/mpiboot-check"

Kind = Literal["Open MPI", "Intel MPI", "MPICH"]

# In this order: Intel's mpirun is a Hydra too.
VERSIONS: tuple[tuple[Kind, str], ...] = (
    ("Open MPI", r"\(Open MPI\) (\S+)"),
    ("Intel MPI", r"Intel\(R\) MPI Library.*?Version (\S+)"),
    ("MPICH", r"HYDRA build details:\s*Version:\s*(\S+)"),
)


@dataclass(frozen=True)
class Runtime:
    """An MPI and its version, as `mpirun --version` says them."""

    kind: Kind
    version: str

    def __str__(self) -> str:
        return f"{self.kind} {self.version}"

    @property
    def daemons(self) -> tuple[str, ...]:
        """The program that mpirun starts on a worker, by name."""
        if self.kind == "Open MPI":
            return ("orted",) if int(self.version.partition(".")[0]) < 5 else ("prted",)
        return ("hydra_bstrap_proxy", "hydra_pmi_proxy") if self.kind == "Intel MPI" else ("hydra_pmi_proxy",)

    def command(self, ranks: int) -> str:
        """mpirun up to the program, for a shell."""
        option = "--hostfile" if self.kind == "Open MPI" else "-f"
        return f"mpirun -n {ranks} {option} {OUR_FILES}/{'slots' if self.kind == 'Open MPI' else 'colons'}"


def hostfiles(hosts: Sequence[str], slots: int) -> dict[str, str]:
    """The hosts in both dialects, by the names under which `command` looks for them."""
    return {
        "slots": "".join(f"{host} slots={slots}\n" for host in hosts),
        "colons": "".join(f"{host}:{slots}\n" for host in hosts),
    }


def parse(version_text: str) -> Runtime | None:
    """What `mpirun --version` printed; None if it is none that we know."""
    for kind, pattern in VERSIONS:
        match = re.search(pattern, version_text, re.DOTALL)
        if match:
            return Runtime(kind, match[1].rstrip(","))
    return None


def environment(ssh_config: str) -> dict[str, str]:
    """Variables by which every MPI calls `ssh -F ssh_config`, and lets root run; each reads its own."""
    options = f"-F {ssh_config}"
    return {
        "PRTE_MCA_plm_ssh_agent": f"ssh {options}",
        "OMPI_MCA_plm_rsh_agent": f"ssh {options}",
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXTRA_ARGS": options,
        "HYDRA_LAUNCH_EXTRA_ARGS": options,  # MPICH up to 4
        "I_MPI_HYDRA_BOOTSTRAP": "ssh",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": options,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
