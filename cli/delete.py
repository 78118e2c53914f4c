"""`mpiboot delete`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mpiboot.cli import job_options

if TYPE_CHECKING:
    from mpiboot.engines.choose import Where


@click.command
@click.argument("names", nargs=-1, metavar="JOB...", required=True)
@job_options.HERE
def delete(names: tuple[str, ...], where: Where) -> int:
    """End each JOB and remove all that belongs to it: also the kept output of a job that has ended.

    \b
    Examples:
      mpiboot delete pi train
      mpiboot delete train -n team

    Exit codes: 0 all are gone; 1 the engine did not remove something; 2 there is no such job.
    """
    from mpiboot.engines import choose, jobs

    found = choose.jobs_of_engines(where)
    chosen = [job for name in names for job in jobs.named(name, found)]
    for job in chosen:
        found[job.engine].delete(job)
    for name, engine in dict.fromkeys((job.name, job.engine) for job in chosen):
        print(f"{name} is gone ({engine})")
    return 0
