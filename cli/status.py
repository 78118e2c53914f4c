"""`mpiboot status`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mpiboot.cli import job_options

if TYPE_CHECKING:
    from mpiboot.engines.choose import Where
    from mpiboot.engines.jobs import JobInfo, Jobs, JobStatus


@click.command
@click.argument("job")
@click.option("-w", "--watch", is_flag=True, help="Print it again whenever it changes, until the job ends.")
@job_options.ANYWHERE
@job_options.JSON
def status(job: str, watch: bool, where: Where, form: str) -> int:
    """Show the state of a JOB: its processes, what is missing and why, and what happened when.

    With -w only the first line is printed again; with -w -o json a whole document in a line.

    \b
    Examples:
      mpiboot status pi
      mpiboot status -w train
      mpiboot status -o json train | jq .job.state

    Exit codes: 0 shown; 2 there is no such job, or no cluster answers; 130 ended by Ctrl-C.
    """
    from mpiboot.engines import choose, json_form, status_text

    jobs, chosen = choose.find(job, where)
    if not watch:
        found = jobs.status(chosen)
        print(json_form.status(found) if form == "json" else status_text.status_text(found))
        return 0
    try:
        return _watch(jobs, chosen, form)
    except KeyboardInterrupt:
        return 130


def _watch(jobs: Jobs, job: JobInfo, form: str) -> int:
    from mpiboot.engines import conditions, json_form, status_text

    def look() -> JobStatus | None:
        now = jobs.again(job)
        return jobs.status(now) if now else None

    shown = ""
    for found in conditions.looks(look, None, lambda text: click.echo(f"mpiboot: {text}", err=True)):
        if found is None:
            click.echo(f"mpiboot: {job.name} was deleted", err=True)
            return 0
        text = json_form.status(found, lines=True) if form == "json" else status_text.head(found)
        if text != shown:
            print(text, flush=True)
            shown = text
        if found.job.has_ended:
            break
    return 0
