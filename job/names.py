"""The names of a job: its objects and hosts with the rules they must keep, its labels, its keys in containers.

Process 1 imports this file for the keys, so it imports little.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpiboot.job.model import Job, Role

# Patterns of one part of a DNS name.
DNS_1035 = r"[a-z]([-a-z0-9]*[a-z0-9])?"
DNS_1123 = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
LONGEST_DNS_LABEL = 63

# Labels of objects and pods.
OPERATOR_LABEL = "training.kubeflow.org/operator-name"
JOB_LABEL = "training.kubeflow.org/job-name"
ROLE_LABEL = "training.kubeflow.org/job-role"
# Kueue's, on jobs that wait in a queue until there is room for them.
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
INDEX_LABEL = "training.kubeflow.org/replica-index"
OPERATOR = "mpi-operator"
GROUP = "kubeflow.org"

CONFIG_DIR = "/etc/mpi"  # where a launcher finds the hostfile and scripts

# Files of keys in containers.
PRIVATE = "id_rsa"
# A second copy where the image's user is not known: root refuses a key that all can read, others cannot read root's.
ANY_USERS = "any-user/id_rsa"

# Variables of a worker whose pod mounts nothing.
HOST_KEY = "MPIBOOT_HOST_KEY"
AUTHORIZED_KEYS = "MPIBOOT_AUTHORIZED_KEYS"


def label_fault(name: str, *, may_start_with_digit: bool = False) -> str | None:
    """Why a name cannot be a DNS label, or None. Service names (DNS-1035) start with a letter, namespaces need not."""
    if len(name) > LONGEST_DNS_LABEL:
        return f"is {len(name)} characters long, at most {LONGEST_DNS_LABEL} are possible"
    pattern, start = (DNS_1123, "") if may_start_with_digit else (DNS_1035, ", starting with a letter")
    if re.fullmatch(pattern, name) is None:
        return f"may hold only lowercase letters, digits and '-'{start} and ending with a letter or digit"
    return None


def job_name_fault(name: str, workers: int) -> str | None:
    """Why no job can have this name and so many workers: the last worker's name is the longest."""
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


def pod_group(job: str) -> str:
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


def object_labels(job: Job) -> dict[str, str]:
    """Labels of the objects that are no pods: `app` for people, the other two for watches that want only ours."""
    return {"app": job.name, **selector(job)}


def selector(job: Job) -> dict[str, str]:
    """What the job's Service selects: all its pods, of both roles."""
    return {OPERATOR_LABEL: OPERATOR, JOB_LABEL: job.name}


def pod_labels(job: Job, role: Role, index: int | None = None) -> dict[str, str]:
    """Labels of a pod, those of every API version, so that the selectors in users' scripts find them.

    `index` is the one in a worker's name; the launcher has none.
    """
    families = {
        # v2beta1
        OPERATOR_LABEL: OPERATOR,
        JOB_LABEL: job.name,
        ROLE_LABEL: role,
        # v1
        "group-name": GROUP,
        "mpi-job-name": job.name,
        "mpi-job-role": role,
        # v1alpha2
        "group_name": GROUP,
        "mpi_job_name": job.name,
        "mpi_role_type": role,
    }
    rank = replica_index(job, role, index)
    return families if rank is None else {**families, INDEX_LABEL: rank, "replica-index": rank}


def replica_index(job: Job, role: Role, index: int | None) -> str | None:
    """The index label: schedulers that place by it want it unique, so a launcher that works is 0 and workers follow."""
    if role == "launcher":
        return "0" if job.run_launcher_as_worker else None
    assert index is not None
    return str(index + job.run_launcher_as_worker)


def known_hosts(public: str) -> str:
    """One line that accepts this key from every host: all workers of a job have its host key."""
    key_type, key = public.split()[:2]
    return f"* {key_type} {key}\n"
