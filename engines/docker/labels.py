"""What every container, network and volume of a job says about itself: the only state there is of a running job."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpiboot.job import elastic

if TYPE_CHECKING:
    from mpiboot.job.model import Job

JOB = "mpiboot.dev/job"
NAMESPACE = "mpiboot.dev/namespace"
RUN = "mpiboot.dev/run"  # one start of one job: what belongs together, and is removed together
CREATED = "mpiboot.dev/created"  # seconds since 1970, by the clock of whoever started it
WORKERS = "mpiboot.dev/workers"
DIGEST = "mpiboot.dev/manifest-digest"
ELASTIC = "mpiboot.dev/elastic"  # the numbers of an elastic job, as JSON; others have no such label
ROLE = "mpiboot.dev/role"
INDEX = "mpiboot.dev/index"

FILLER = "filler"  # the role of the container through which volumes are filled


@dataclass(frozen=True)
class RunLabels:
    """The labels that all objects of one run share."""

    job: str
    namespace: str
    run: str
    created: float
    workers: int
    digest: str
    elastic: str = ""

    def all(self) -> dict[str, str]:
        """As the engine takes them."""
        found = {
            JOB: self.job, NAMESPACE: self.namespace, RUN: self.run, CREATED: f"{self.created:.3f}",
            WORKERS: str(self.workers), DIGEST: self.digest,
        }  # fmt: skip
        return {**found, ELASTIC: self.elastic} if self.elastic else found

    def of(self, role: str, index: int) -> dict[str, str]:
        """The labels of one container."""
        return self.all() | {ROLE: role, INDEX: str(index)}

    @property
    def network(self) -> str:
        """The name of the run's network."""
        return f"mpiboot-{self.job}-{self.run}"

    def volume(self, key: str) -> str:
        """The name of one of the run's volumes."""
        return f"mpiboot-{self.job}-{self.run}-{key}"


def elastic_of(job: Job) -> str:
    """What a job says of its size and its slots, for ELASTIC; empty if it is not elastic."""
    size = elastic.of_job(job)
    return json.dumps([*size, job.slots_per_worker]) if size else ""


def size_of(text: str) -> tuple[elastic.Elastic, int] | None:
    """The same, read back; None if it is not elastic."""
    if not text:
        return None
    *size, slots = json.loads(text)
    return elastic.Elastic(*size), slots


def who(role: str, index: int) -> str:
    """How a process of a job is called in its output: `launcher`, `worker-0`."""
    return role if role == "launcher" else f"{role}-{index}"
