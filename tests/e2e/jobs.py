"""A user's work with jobs by kubectl, and the hosts on which the ranks really ran."""

from __future__ import annotations

import copy
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cluster.waiting import wait_for

if TYPE_CHECKING:
    from cluster.fixtures import Cluster

Object = dict[str, Any]
PATIENCE = 150.0  # seconds; only a test that fails waits that long

# Every rank prints where it runs and takes part in a sum, which shows that the ranks communicate.
PI = """
from mpi4py import MPI
import socket
world = MPI.COMM_WORLD
steps = 100000
part = sum(4 / (1 + ((i + .5) / steps) ** 2) for i in range(world.rank, steps, world.size)) / steps
pi = world.allreduce(part)
print(f"rank {world.rank} of {world.size} on {socket.gethostname()}: pi is {pi:.6f}", flush=True)
"""


def mpijob(name: str, image: str, command: list[str], workers: int = 2, **spec: object) -> Object:
    """A v2beta1 MPIJob with one slot a worker, whose pods end quickly."""
    container = {"name": "main", "image": image, "imagePullPolicy": "IfNotPresent"}

    def replica(count: int, **more: object) -> Object:
        return {"replicas": count, "template": {"spec": {
            "terminationGracePeriodSeconds": 1, "containers": [{**container, **more}]}}}

    return {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": name}, "spec": {
        "slotsPerWorker": 1, "runPolicy": {"cleanPodPolicy": "None"}, **spec,
        "mpiReplicaSpecs": {"Launcher": replica(1, command=command), "Worker": replica(workers)}}}


def pi(name: str, image: str, workers: int = 2, **spec: object) -> Object:
    """A job that computes pi, one rank a worker."""
    return mpijob(name, image, ["mpirun", "-n", str(workers), "python3", "-c", PI], workers, **spec)


def held(command: list[str]) -> list[str]:
    """A launcher's command that waits until the test calls `jobs.start_held(name)`."""
    return ["sh", "-c", 'until [ -e /tmp/go ]; do sleep 0.2; done; exec "$@"', "held", *command]


def everywhere(job: Object, **pod: object) -> Object:
    """The job with these fields in the pod specs of both roles."""
    changed = copy.deepcopy(job)
    for replica in changed["spec"]["mpiReplicaSpecs"].values():
        replica["template"]["spec"].update(pod)
    return changed


@dataclass
class Jobs:
    """The jobs of one test."""

    cluster: Cluster
    namespace: str
    submitted: list[str] = field(default_factory=list)

    def submit(self, job: Object) -> str:
        """Create the job and return its name."""
        name = str(job["metadata"]["name"])
        self.submitted.append(name)
        self._kubectl("create", "-f", "-", given=json.dumps(job))
        return name

    def run(self, job: Object) -> str:
        """Run a job that succeeds, and return what its launcher printed."""
        name = self.submit(job)
        assert self.end(name) == "Succeeded", self.report(name)
        return self.output(name)

    def end(self, name: str, limit: float = PATIENCE) -> str:
        """Wait for the end of a job: Succeeded or Failed."""
        self.until(name, "its end", lambda: self._ends(name), limit)
        ended, = self._ends(name)
        return str(ended)

    def until(self, name: str, what: str, holds: Any, limit: float = PATIENCE) -> None:  # noqa: ANN401 (any truth)
        """Wait until something holds for a job. Out of time, the error has everything that is known of the job."""
        try:
            wait_for(f"{name}: {what}", lambda: bool(holds()), limit)
        except Exception as error:
            raise AssertionError(f"{error}\n{self.report(name)}") from error

    def get(self, name: str) -> Object:
        found: Object = json.loads(self._kubectl("get", "mpijobs.v2beta1.kubeflow.org", name, "-o", "json"))
        return found

    def patch(self, name: str, patch: Object) -> None:
        self._kubectl("patch", "mpijobs.v2beta1.kubeflow.org", name, "--type=merge", "-p", json.dumps(patch))

    def condition(self, name: str, kind: str) -> Object:
        """One condition of its status; empty if it has none of that type."""
        conditions: list[Object] = self.get(name).get("status", {}).get("conditions") or []
        return next((each for each in conditions if each["type"] == kind), {})

    def pods(self, name: str = "", role: str = "") -> list[Object]:
        """All pods of the namespace, or those of a job, or those of a role in it."""
        wanted = {"job-name": name, "job-role": role}
        selector = ",".join(f"training.kubeflow.org/{label}={value}" for label, value in wanted.items() if value)
        found: list[Object] = json.loads(self._kubectl("get", "pods", "-l", selector, "-o", "json"))["items"]
        return found

    def start_held(self, name: str) -> None:
        """Let the command of a `held` launcher begin. Its container runs already."""
        pod, = self.pods(name, "launcher")
        self.cluster.kubectl("exec", "-n", self.namespace, pod["metadata"]["name"], "--", "touch", "/tmp/go")

    def output(self, name: str) -> str:
        """The output of all of the launcher's pods so far."""
        return "".join(self._try("logs", pod["metadata"]["name"]) for pod in self.pods(name, "launcher"))

    def events(self, name: str) -> list[str]:
        """REASON: MESSAGE of each event about the job."""
        found = json.loads(self._kubectl("get", "events", "-o", "json", "--field-selector",
                                         f"involvedObject.kind=MPIJob,involvedObject.name={name}"))["items"]
        return [f"{each['reason']}: {each['message']}" for each in found]

    def launcher_starts(self, name: str) -> int:
        """How often a launcher's container was started."""
        return sum(1 + each["restartCount"] for pod in self.pods(name, "launcher")
                   for each in pod["status"].get("containerStatuses", [])
                   if "running" in each["state"] or "terminated" in each["state"])

    def report(self, name: str) -> str:
        """Everything that a user can look at: the job, pods, events and logs."""
        parts = [self._try("get", "mpijobs.v2beta1.kubeflow.org", name, "-o", "yaml"),
                 self._try("get", "pods", "-o", "wide"), "\n".join(self.events(name))]
        parts += (self._try("logs", pod["metadata"]["name"], "--all-containers") for pod in self.pods(name))
        return "\n---\n".join(parts)

    def delete_all(self) -> None:
        for name in self.submitted:
            self._try("delete", "mpijobs.v2beta1.kubeflow.org", name, "--ignore-not-found")

    def _ends(self, name: str) -> list[str]:
        return [kind for kind in ("Succeeded", "Failed") if self.condition(name, kind).get("status") == "True"]

    def _kubectl(self, *arguments: str, given: str | None = None) -> str:
        return self.cluster.kubectl(*arguments, "-n", self.namespace, given=given)

    def _try(self, *arguments: str) -> str:
        done = self.cluster.try_kubectl(*arguments, "-n", self.namespace)
        return done.stdout + done.stderr


def ranks(output: str) -> Counter[str]:
    """The number of ranks on each host, from the output of a job whose ranks all computed the same pi."""
    lines = [line.split() for line in output.splitlines() if line.startswith("rank ")]
    assert {line[-1] for line in lines} == {"3.141593"}, output
    assert sorted(int(line[1]) for line in lines) == list(range(int(lines[0][3]))), output
    return Counter(line[5].rstrip(":") for line in lines)


def one_on_each(name: str, workers: int) -> dict[str, int]:
    """The result of `ranks` when every worker has one rank and the launcher none."""
    return {f"{name}-worker-{index}": 1 for index in range(workers)}
