"""Restarts in place: how a job says that its launcher runs a failed command again on the same workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.job import elastic, job_annotations
from mpiboot.job.template import main_container, starts_mpiboot, words
from mpiboot.job.values import natural

if TYPE_CHECKING:
    from mpiboot.job.model import Job

OPTION = ("--restarts",)


def of_job(job: Job) -> int:
    """How often the launcher restarts its command, if `mpiboot launch` runs in it."""
    container = main_container(job.launcher.template, job.main_container)
    option = elastic.number(words(container), OPTION) if starts_mpiboot(container) else None
    if option is not None:
        return option
    name = job_annotations.VARIABLES[job_annotations.RESTARTS]
    given = [item.get("value") for item in container.get("env") or () if isinstance(item, dict)
             and item.get("name") == name]  # fmt: skip
    return natural(str(given[-1] if given else job_annotations.variables(job.annotations).get(name, ""))) or 0
