"""The labels of every container, network and volume of a job: the only state of a running job."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpiboot.job import elastic
from mpiboot.job.job_annotations import PREFIX

if TYPE_CHECKING:
    from mpiboot.job.model import Job

JOB = f"{PREFIX}job"
RUN = f"{PREFIX}run"  # one start of one job: all of it is removed together
CREATED = f"{PREFIX}created"  # seconds since 1970, by the clock of the machine that started it
WORKERS = f"{PREFIX}workers"
ELASTIC = f"{PREFIX}elastic"  # the numbers of an elastic job, as JSON; others have no such label
ROLE = f"{PREFIX}role"
INDEX = f"{PREFIX}index"

FILLER = "filler"  # the role of the container through which volumes are filled


@dataclass(frozen=True)
class RunLabels:
    """The labels that all objects of one run share."""

    job: str
    run: str
    created: float
    workers: int
    elastic: str = ""

    def all(self) -> dict[str, str]:
        """As the engine takes them."""
        found = {JOB: self.job, RUN: self.run, CREATED: f"{self.created:.3f}", WORKERS: str(self.workers)}
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
    """The value of ELASTIC: the sizes and slots of a job; empty if it is not elastic."""
    size = elastic.of_job(job)
    return json.dumps([*size, job.slots_per_worker]) if size else ""


def size_of(text: str) -> tuple[elastic.Elastic, int] | None:
    """The value of ELASTIC, read back; None if the job is not elastic."""
    if not text:
        return None
    *size, slots = json.loads(text)
    return elastic.Elastic(*size), slots
