"""`mpiboot wait JOB`. Without a job `mpiboot wait` is a command inside containers: see src/mpiboot/__main__.py."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from mpiboot.cli import job_options
from mpiboot.cli.durations import seconds_of
from mpiboot.engines.conditions import CONDITIONS, NEVER, OUT_OF_TIME

if TYPE_CHECKING:
    from mpiboot.engines.choose import Where
    from mpiboot.engines.conditions import Condition
    from mpiboot.engines.jobs import JobInfo


@click.command
@click.argument("job")
@click.option("--for", "condition", type=click.Choice(CONDITIONS),
              help="What to wait for.  [default: the end, and exit with the job's exit code]")  # fmt: skip
@click.option("--timeout", callback=seconds_of, metavar="TIME",
              help="How long to wait at most: 90s, 10m, 1h30m.  [default: without a limit]")  # fmt: skip
@job_options.ANYWHERE
@job_options.JSON
def wait(job: str, condition: Condition | None, timeout: float | None, where: Where, form: str) -> int:
    """Wait until a JOB has ended, and exit with its exit code; or wait for a condition.

    A script that must tell a job's exit code from a time-out uses --for.

    \b
    Examples:
      mpiboot wait pi
      mpiboot wait --for running --timeout 10m train
      mpiboot wait --for succeeded train -n team || mpiboot logs train

    Exit codes: without --for the job's own; 1 it is gone and its exit code unknown; 2 there is no such job; 124 out of
    time. With --for 0 the condition holds; 1 the job has ended or is gone, so it never will; 2 there is no such job;
    124 out of time. 130 ended by Ctrl-C.
    """
    from mpiboot.engines import choose, conditions, json_form
    from mpiboot.engines.jobs import NoSuchJobError

    try:
        jobs, chosen = choose.find(job, where)
    except NoSuchJobError:
        if condition != "deleted":
            raise
        if form == "json":
            print(json_form.job(None))
        return 0
    until = None if timeout is None else time.monotonic() + timeout
    last: JobInfo | None = chosen
    try:
        for last in conditions.looks(lambda: jobs.again(chosen), until, _note):
            verdict = conditions.holds(condition or "ended", last.state if last else None)
            if verdict is None:
                continue
            if form == "json":
                print(json_form.job(last))
            if condition is None:
                return _exit_code(chosen, last)
            if not verdict:
                _note(f"{job} is {last.outcome}" if last else f"{job} was deleted")
            return 0 if verdict else NEVER
    except KeyboardInterrupt:
        return 130
    _note(f"{job} is {last.outcome if last else 'gone'} after {timeout:g} s; waited for: {condition or 'ended'}")
    return OUT_OF_TIME


def _exit_code(job: JobInfo, ended: JobInfo | None) -> int:
    if ended is None or ended.exit_code is None:
        _note(f"{job.name} has ended, and its exit code is unknown")
        return 1
    return ended.exit_code


def _note(text: str) -> None:
    click.echo(f"mpiboot: {text}", err=True)
