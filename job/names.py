"""The names of a job's objects and hosts, and the rules they must keep."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpiboot.job.model import Job

DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
DNS_1123 = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
LONGEST_LABEL = 63


def label_fault(name: str, *, may_start_with_digit: bool = False) -> str | None:
    """Why a name cannot be a DNS label, or None. Service names (DNS-1035) start with a letter, namespaces need not."""
    if len(name) > LONGEST_LABEL:
        return f"is {len(name)} characters long, at most {LONGEST_LABEL} are possible"
    pattern, start = (DNS_1123, "") if may_start_with_digit else (DNS_1035, ", starting with a letter")
    if pattern.fullmatch(name) is None:
        return f"may hold only lowercase letters, digits and '-'{start} and ending with a letter or digit"
    return None


def job_name_fault(name: str, workers: int) -> str | None:
    """Why a job of this name with so many workers cannot be: the last worker's name is the longest."""
    last = worker(name, max(workers, 1) - 1)
    fault = label_fault(last)
    return fault and f"gives a worker the name {last!r}, which {fault}"


def worker(job: str, index: int) -> str:
    return f"{job}-worker-{index}"


def launcher(job: str) -> str:
    return f"{job}-launcher"


def config_map(job: str) -> str:
    return f"{job}-config"


def secret(job: str) -> str:
    return f"{job}-ssh"


def service(job: str) -> str:
    return job


def host(pod: str, job: Job, cluster_domain: str = "") -> str:
    """The name by which the hostfile knows a pod: its DNS name below the job's Service."""
    domain = f".{cluster_domain}" if cluster_domain else ""
    return f"{pod}.{service(job.name)}.{job.namespace}.svc{domain}"


def worker_hosts(job: Job, cluster_domain: str = "") -> tuple[str, ...]:
    """Every worker's host name, by index."""
    return tuple(host(worker(job.name, index), job, cluster_domain) for index in range(job.workers))


def launcher_host(job: Job, cluster_domain: str = "") -> str:
    """The launcher's name below the Service."""
    return host(launcher(job.name), job, cluster_domain)
