"""MPIJobs whose ranks print when and where they run. A job counts only if every worker had its rank."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bench._cluster import create, exists, log, pods, remove, wait

if TYPE_CHECKING:
    from bench._cluster import Client

PATH = "/apis/kubeflow.org/v2beta1/namespaces/{}/mpijobs"
RANK = "echo rank $(date +%s.%N) $(hostname)"
# What an init container can do in any image with a shell: a connection to each worker, by its name.
ASK = """for index in $(seq 0 {0}); do
until (exec 3<>/dev/tcp/{1}-worker-$index.{1}/2222) 2>/dev/null; do sleep 0.1; done
done"""
# Variables of Open MPI 5. mpi-operator sets only those of Open MPI 4, and then all ranks run on the launcher.
REPAIR = {
    "PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile", "PRTE_MCA_prte_set_default_slots": "1",
    "PRTE_MCA_prte_keep_fqdn_hostnames": "true", "PRTE_MCA_plm_ssh_args": "-o ConnectionAttempts=10"}


class JobFaultError(Exception):
    """A job failed, did not end, or ran its ranks on the wrong hosts."""


@dataclass(frozen=True)
class Kind:
    """What differs between the jobs of one operator or image and another."""

    image: str
    environment: dict[str, str] = field(default_factory=dict)
    worker_command: tuple[str, ...] = ()
    keys: str = "/home/mpiuser/.ssh"
    late: str = ""  # the worker whose name ends with this starts 40 s after the others
    annotations: dict[str, str] = field(default_factory=dict)
    spec: dict[str, str] = field(default_factory=dict)  # more fields of the job's spec
    command: tuple[str, ...] = ()  # of the launcher; by default an mpirun whose ranks print when and where they run
    asks_first: bool = False  # the launcher has an init container that waits until each worker's sshd answers
    example: bool = False  # arguments behind the images' entrypoint, and a late readiness probe, as in their examples


@dataclass(frozen=True)
class Outcome:
    """Times in seconds since 1970, and how often the launcher was started."""

    submitted: float
    listening: float  # the last worker's sshd accepts connections
    first_rank: float
    launcher_starts: int
    succeeded: float  # the status says so
    printed: tuple[str, ...] = ()  # by the launcher


def run(api: Client, space: str, kind: Kind, workers: int, name: str) -> Outcome:
    """Submit a job, wait for its end, read its logs and delete it."""
    path = f"{PATH.format(space)}/{name}"
    begun = time.time()
    create(api, PATH.format(space), manifest(kind, workers, name))
    try:
        try:
            wait(f"the end of {space}/{name}", lambda: _finished(api, path))
        except TimeoutError as error:
            raise JobFaultError(str(error)) from None
        return _outcome(api, space, workers, begun, time.time())
    finally:
        remove(api, path, space)
        wait("its launcher's end", lambda: not exists(api, f"/apis/batch/v1/namespaces/{space}/jobs/{name}-launcher"))


def manifest(kind: Kind, workers: int, name: str) -> dict[str, Any]:
    """The MPIJob: one rank a worker."""
    container = {"image": kind.image, "imagePullPolicy": "IfNotPresent", "securityContext": {"runAsUser": 1000}}
    words = "args" if kind.example else "command"
    launcher = {**container, "name": "launcher",
                words: list(kind.command) or ["mpirun", "-n", str(workers), "sh", "-c", RANK],
                "env": [{"name": name, "value": value} for name, value in kind.environment.items()]}
    worker = {**container, "name": "worker", **({words: list(kind.worker_command)} if kind.worker_command else {}),
              **({"readinessProbe": {"tcpSocket": {"port": 2222}, "initialDelaySeconds": 2}} if kind.example else {})}
    late = {**container, "name": "late", "command": ["sh", "-c", f"case $(hostname) in *{kind.late}) sleep 40;; esac"]}
    first = {"initContainers": [late]} if kind.late else {}
    ask = {**container, "name": "ask", "command": ["bash", "-c", ASK.format(workers - 1, name)]}
    asks = {"initContainers": [ask]} if kind.asks_first else {}
    end = {"terminationGracePeriodSeconds": 1}  # no program in them needs more, and the samples take less time
    metadata = {"name": name, "annotations": kind.annotations}
    return {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": metadata, "spec": {
        "slotsPerWorker": 1, "sshAuthMountPath": kind.keys, "runPolicy": {"cleanPodPolicy": "None"}, **kind.spec,
        "mpiReplicaSpecs": {
            "Launcher": {"replicas": 1, "template": {"spec": {"containers": [launcher], **asks, **end}}},
            "Worker": {"replicas": workers, "template": {"spec": {"containers": [worker], **first, **end}}}}}}


def _finished(api: Client, path: str) -> bool:
    conditions = api.get(path).object.get("status", {}).get("conditions") or []
    ends = {each["type"] for each in conditions if each["status"] == "True"} & {"Succeeded", "Failed"}
    if "Failed" in ends:
        raise JobFaultError(f"{path} failed: {conditions[-1].get('message')}")
    return bool(ends)


def _outcome(api: Client, space: str, workers: int, begun: float, succeeded: float) -> Outcome:
    by_role: dict[str, list[dict[str, Any]]] = {"launcher": [], "worker": []}
    for pod in pods(api, space):
        by_role[pod["metadata"]["labels"]["training.kubeflow.org/job-role"]].append(pod)
    printed = tuple(line for pod in by_role["launcher"]
                    for _, line in log(api, space, pod["metadata"]["name"], "launcher"))
    ranks = [line.split()[1:] for line in printed if line.startswith("rank ")]
    hosts = Counter(host for _, host in ranks)
    if len(hosts) != workers or len(set(hosts.values())) != 1:
        raise JobFaultError(f"the ranks are not one on each of {workers} workers: {dict(hosts)}")
    listening = [when for pod in by_role["worker"] for when, line in log(api, space, pod["metadata"]["name"], "worker")
                 if "listening on 0.0.0.0" in line.lower()]
    restarts = sum(each["restartCount"] for pod in by_role["launcher"]
                   for each in pod["status"].get("containerStatuses", []))
    return Outcome(begun, max(listening, default=0.0), min(float(when) for when, _ in ranks),
                   len(by_role["launcher"]) + restarts, succeeded, printed)
