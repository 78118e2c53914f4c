"""`mpiboot events`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mpiboot.cli import job_options

if TYPE_CHECKING:
    from mpiboot.engines.choose import Where


@click.command
@click.argument("job")
@job_options.ANYWHERE
@job_options.JSON
def events(job: str, where: Where, form: str) -> int:
    """List what happened to a JOB and its processes, by time.

    On a cluster these are the events of the MPIJob, its pods and its launcher's Job, which a cluster keeps for an hour.
    On this machine they are those that `mpiboot run` has recorded.

    \b
    Examples:
      mpiboot events pi
      mpiboot events train -n team -o json

    Exit codes: 0 listed, even if there is none; 2 there is no such job, or no cluster answers.
    """
    from mpiboot.engines import choose, json_form
    from mpiboot.engines.status_text import utc

    jobs, chosen = choose.find(job, where)
    found = jobs.events(chosen)
    if form == "json":
        print(json_form.events(chosen, found))
        return 0
    for each in found:
        times = f" (x{each.count})" if each.count > 1 else ""
        warning = "warning: " if each.type == "Warning" else ""
        text = f": {each.message}" if each.message else ""
        print(f"{utc(each.time)}  {each.object}  {warning}{each.reason}{text}{times}")
    return 0
