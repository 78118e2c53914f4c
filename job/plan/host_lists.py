"""The texts that list a job's hosts: the hostfile in the form of its runtime, and the discovery script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.job import mpi, names
from mpiboot.job.values import natural

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mpiboot.job.model import Dialect, Job
    from mpiboot.job.mpi import HostfileForm

# Anyone may write a ConfigMap, so the first line may hold anything: a number of slots is short, and so is a host.
LONGEST_LINE = 620

# `mpiboot launch` keeps it current: a line `host:slots` for each worker whose sshd answers.
LIVE_FILE = "/tmp/mpiboot-$(id -u)/live-hosts"  # noqa: S108 - the script takes it only from its own user
LIVE_FILE_ENV = "MPIBOOT_LIVE_HOSTS"


def hostfile_text(hosts: Iterable[str], slots: int, form: HostfileForm) -> str:
    """One line a host, in the given order: ranks are placed in it."""
    return "".join(form.line(host, slots) for host in hosts)


def read_hostfile(hostfile: str) -> tuple[int, str] | None:
    """The slots and the runtime that the first line of a hostfile shows. None: the line is missing or not understood.

    The result is the first runtime with that form of hostfile.
    """
    first = hostfile[: LONGEST_LINE + 1].partition("\n")[0]
    if len(first) > LONGEST_LINE:
        return None
    for runtime in mpi.RUNTIMES:
        host, separator, slots = first.rpartition(runtime.hostfile.separator)
        if separator and host and len(host.split()) == 1 and (number := natural(slots)) is not None:
            return number, runtime.name
    return None


def published_hostfile(job: Job, cluster_domain: str = "") -> str:
    """The hostfile that the job's ConfigMap shows: full names everywhere, a working launcher first."""
    first = (names.launcher_host(job, cluster_domain),) if job.run_launcher_as_worker else ()
    return hostfile_text((*first, *names.worker_hosts(job, cluster_domain)), job.slots_per_worker, job.runtime.hostfile)


def launchers_hostfile(job: Job, cluster_domain: str = "") -> str:
    """The hostfile that the launcher mounts: its own line is its host name.

    MPICH, Intel MPI and Open MPI (when it keeps full names) do not recognize their own host by a longer name, and would
    log in to it by ssh.
    """
    first = (names.launcher(job.name),) if job.run_launcher_as_worker else ()
    return hostfile_text((*first, *names.worker_hosts(job, cluster_domain)), job.slots_per_worker, job.runtime.hostfile)


def discovery_script(hosts: Iterable[str], slots: int, dialect: Dialect) -> str:
    """`discover_hosts.sh`, which elastic launchers run: it prints their live file if there is one, else these hosts.

    v1 had `host:slots` on its lines; v2beta1 has bare names, so its live file is printed without the slots.
    """
    bare = dialect == "v2beta1"
    show = "sed 's/:[0-9]*$//'" if bare else "cat"
    lines = "".join(f"echo {host}\n" if bare else f"echo {host}:{slots}\n" for host in hosts)
    # horovodrun reads an empty list as one host without a name, and its discovery never recovers from that. When a
    # script fails, horovodrun logs it and calls the script again.
    none_ready = 'echo "no worker is ready" >&2\nexit 1\n'
    return (
        "#!/bin/sh\n"
        f'live="${{{LIVE_FILE_ENV}:-{LIVE_FILE}}}"\n'
        f'if [ -O "$live" ]; then\n[ -s "$live" ] && exec {show} "$live"\n{none_ready}fi\n'
        f"{lines or none_ready}"
    )
