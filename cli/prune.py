"""`mpiboot prune`."""

from __future__ import annotations

import time

import click

from mpiboot.cli import job_options
from mpiboot.cli.durations import seconds_of


@click.command
@click.option("--older-than", "older_than", callback=seconds_of, metavar="TIME",
              help="Only of jobs that ended longer ago: 12h, 7d.  [default: of all that have ended]")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="List what would be removed.")
@job_options.JSON
def prune(older_than: float | None, dry_run: bool, form: str) -> int:
    """Remove what is kept on this machine of jobs that have ended: their output and events.

    mpiboot itself keeps the last 50 jobs, 256 MiB in all. Running jobs and jobs of a cluster are not touched.

    \b
    Examples:
      mpiboot prune --older-than 7d
      mpiboot prune --dry-run

    Exit codes: 0 removed, even if there was nothing; 2 the input is wrong.
    """
    from mpiboot.engines import json_form
    from mpiboot.engines.records import prune as pruning
    from mpiboot.engines.records.record import remove
    from mpiboot.engines.records.recorded_jobs import job_of

    freed = 0
    found = pruning.older_than(time.time() - (older_than or 0))
    for directory, _ in found:
        freed += pruning.size_of(directory)
        if not dry_run:
            remove(directory)
    if form == "json":
        print(json_form.jobs([job_of(record) for _, record in found]))
        return 0
    for _, record in found:
        print(f"{record.name} ({record.engine})")
    print(f"{'would remove' if dry_run else 'removed'} {len(found)} jobs, {freed / 1e6:.1f} MB")
    return 0
