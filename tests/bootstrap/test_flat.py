"""No MPI sends a worker to another worker: workers have no key for that, so a job started as a tree fails."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.bootstrap.conftest import Job
    from tests.bootstrap.processes import Process

WHERE = 'set -- $SSH_CONNECTION; echo "rank on $3"'
# Open MPI makes a tree of more than 64 hosts; with this, of more than 2.
NARROW = {"PRTE_MCA_routed_radix": "2", "PRTE_MCA_prte_routed_radix": "2"}


def hosts_of_ranks(launch: Process) -> set[str]:
    return set(re.findall(r"rank on (\S+)", launch.stdout))


def test_open_mpi_starts_all_daemons_from_the_launcher(job: Job, runtime: Callable[[str], Path]) -> None:
    job.runtime = runtime("openmpi")
    job.many(7)
    launch = job.launch("mpirun", "-n", 7, "sh", "-c", WHERE, env=NARROW)
    assert launch.ends() == 0, launch.stderr
    assert hosts_of_ranks(launch) == set(job.addresses)


def test_a_tree_would_have_failed(job: Job, runtime: Callable[[str], Path]) -> None:
    """A user can ask for a tree: the test above proves something only if this launch fails."""
    job.runtime = runtime("openmpi")
    job.many(7)
    launch = job.launch("mpirun", "-n", 7, "sh", "-c", WHERE, env={**NARROW, "PRTE_MCA_plm_ssh_no_tree_spawn": "0"})
    assert launch.ends() != 0
    assert hosts_of_ranks(launch) == set()


def test_intel_mpi_starts_all_daemons_from_the_launcher(job: Job, runtime: Callable[[str], Path]) -> None:
    """By itself it makes a tree of more than 16."""
    job.runtime = runtime("intel")
    job.many(18)
    launch = job.launch("mpirun", "-n", 18, "sh", "-c", WHERE)
    assert launch.ends() == 0, launch.stderr
    assert hosts_of_ranks(launch) == set(job.addresses)


def test_mpich_starts_all_daemons_from_the_launcher(job: Job, runtime: Callable[[str], Path]) -> None:
    job.runtime = runtime("mpich")
    job.many(18)
    launch = job.launch("mpirun", "-n", 18, "sh", "-c", WHERE)
    assert launch.ends() == 0, launch.stderr
    assert hosts_of_ranks(launch) == set(job.addresses)
