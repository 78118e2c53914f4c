"""`mpiboot scale`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mpiboot.cli import job_options

if TYPE_CHECKING:
    from mpiboot.engines.choose import Where


@click.command
@click.argument("job")
@click.argument("workers", type=click.IntRange(min=1))
@job_options.HERE
def scale(job: str, workers: int, where: Where) -> int:
    """Give a running elastic JOB this number of WORKERS; it goes on without a restart.

    A job is elastic if its command has a --host-discovery-script, as horovodrun does. New workers get the next numbers,
    and those with the highest are removed. On a cluster this is a patch of Worker.replicas. A job in a queue of Kueue
    is started again instead, and a line says so first.

    Example: mpiboot scale train 4.

    Exit codes: 0 the job has this number of workers (kubernetes: it will have them); 1 the job's `mpiboot run` did not
    act in time; 2 there is no such job, it is not elastic or not running, or its command takes more or fewer workers.
    """
    from mpiboot.engines import choose, jobs

    found = choose.jobs_of_engines(where)
    chosen = jobs.named(job, found)[0]
    before = found[chosen.engine].scale(chosen, workers, lambda text: click.echo(f"mpiboot: {text}", err=True))
    print(f"{job}: {before} -> {workers} workers ({chosen.engine})")
    return 0
