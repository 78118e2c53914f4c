"""`mpiboot prune`."""

from __future__ import annotations

import time

import click

from mpiboot.cli.durations import seconds_of


@click.command
@click.option("--older-than", "older_than", callback=seconds_of, metavar="TIME",
              help="Only of jobs that ended longer ago: 12h, 7d.  [default: of all that have ended]")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="List what would be removed.")
def prune(older_than: float | None, dry_run: bool) -> int:
    """Remove what is kept on this machine of jobs that have ended: their output and events.

    mpiboot itself keeps the last 50 jobs, 256 MiB in all. Running jobs and jobs of a cluster are not touched.

    \b
    Examples:
      mpiboot prune --older-than 7d
      mpiboot prune --dry-run

    Exit codes: 0 removed, even if there was nothing; 2 the input is wrong.
    """
    from mpiboot.engines.records import prune as pruning
    from mpiboot.engines.records.record import remove

    freed = 0
    found = pruning.older_than(time.time() - (older_than or 0))
    for directory, record in found:
        freed += pruning.size_of(directory)
        if not dry_run:
            remove(directory)
        print(f"{record.name} ({record.engine})")
    print(f"{'would remove' if dry_run else 'removed'} {len(found)} jobs, {freed / 1e6:.1f} MB")
    return 0
