"""How the check calls the image's mpirun: the command, the hostfiles, the environment. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.job import mpi

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpiboot.job.mpi import Runtime

# The directory of the checker's own files in every container. No image has such a directory.
OUR_FILES = "/mpiboot-check"


def command(runtime: Runtime, ranks: int) -> str:
    """The mpirun command without the program, for a shell."""
    return f"mpirun -n {ranks} {runtime.hostfile_option} {OUR_FILES}/{runtime.hostfile.name}"


def hostfiles(hosts: Sequence[str], slots: int) -> dict[str, str]:
    """A hostfile in every form, with the names that `command` uses."""
    return {form.name: "".join(form.line(host, slots) for host in hosts) for form in mpi.hostfile_forms()}


def environment(ssh_config: str) -> dict[str, str]:
    """Variables that make every MPI call `ssh -F ssh_config` and allow root; each MPI reads its own."""
    options = f"-F {ssh_config}"
    found = mpi.root_may_run()
    for runtime in mpi.RUNTIMES:
        if runtime.ssh_takes_options:
            found |= dict.fromkeys(runtime.ssh_variables, f"ssh {options}")
        else:
            found |= dict.fromkeys(runtime.ssh_options, options)
        found |= dict(runtime.by_ssh)
    return found
