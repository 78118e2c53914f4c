"""`mpiboot ps`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from mpiboot.cli import job_options

if TYPE_CHECKING:
    from mpiboot.engines.choose import Where


@click.command
@click.option("-a", "--all", "ended", is_flag=True, help="Also jobs that have ended.")
@job_options.HERE
@job_options.JSON
def ps(ended: bool, where: Where, form: str) -> int:
    """List the jobs on this machine, or those of a cluster, the newest first.

    Without -a these are the jobs that run or wait, and what a killed `mpiboot run` left.

    \b
    Examples:
      mpiboot ps
      mpiboot ps -a -o json
      mpiboot ps -n team --context prod

    Exit codes: 0 listed, even if there is none; 2 the engine that --engine names does not answer.
    """
    from mpiboot.engines import choose, jobs, json_form

    found = jobs.newest_first(choose.jobs_of_engines(where))
    found = [job for job in found if ended or job.state not in {"succeeded", "failed"}]
    if form == "json":
        print(json_form.jobs(found))
        return 0
    now = time.time()
    rows = [("JOB", "ENGINE", "STATE", "WORKERS", "AGE", "IMAGE")]
    rows += [
        (job.name, job.engine, job.outcome, str(job.workers), jobs.age(now - job.created), job.image) for job in found
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip())
    return 0
