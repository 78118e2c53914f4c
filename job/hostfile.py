"""The hostfile's text in a runtime's dialect."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mpiboot.job import names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mpiboot.job.model import Implementation, Job


def text(hosts: Iterable[str], slots: int, implementation: Implementation) -> str:
    """One line a host, in the given order: ranks are placed in it."""
    if implementation == "OpenMPI":
        return "".join(f"{host} slots={slots}\n" for host in hosts)
    return "".join(f"{host}:{slots}\n" for host in hosts)


def read(hostfile: str) -> tuple[int, Implementation] | None:
    """Slots and runtime that a text was written for, as its first line shows them. None: it has none, or an odd one.

    MPICH stands for Intel MPI as well, whose hostfiles are the same.
    """
    found = re.match(r"\S+?(?: slots=(\d+)|:(\d+))$", hostfile, re.MULTILINE)
    if not found:
        return None
    return (int(found[1]), "OpenMPI") if found[1] else (int(found[2]), "MPICH")


def published(job: Job, cluster_domain: str = "") -> str:
    """The hostfile that the job's ConfigMap shows: full names everywhere, a working launcher first."""
    first = (names.launcher_host(job, cluster_domain),) if job.run_launcher_as_worker else ()
    return text((*first, *names.worker_hosts(job, cluster_domain)), job.slots_per_worker, job.implementation)


def for_launcher(job: Job, cluster_domain: str = "") -> str:
    """The hostfile that the launcher mounts: its own line is its host name.

    By a longer name MPICH, Intel MPI and Open MPI (told to keep full names) do not know themselves and would log in to
    themselves by ssh.
    """
    first = (names.launcher(job.name),) if job.run_launcher_as_worker else ()
    return text((*first, *names.worker_hosts(job, cluster_domain)), job.slots_per_worker, job.implementation)
