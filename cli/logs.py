"""`mpiboot logs`."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import click

from mpiboot.cli import job_options

if TYPE_CHECKING:
    from mpiboot.engines.choose import Where


@click.command
@click.argument("job")
@click.option("-f", "--follow", is_flag=True, help="Print new output until the job ends.")
@click.option("--worker", type=click.IntRange(min=0), metavar="N",
              help="Print the output of this worker only.  [default: of all, on a cluster of launchers]")  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="Print only what the launcher prints.")
@job_options.ANYWHERE
def logs(job: str, follow: bool, worker: int | None, quiet: bool, where: Where) -> int:
    """Print the output of a JOB: the launcher's stdout to stdout, everything else to stderr.

    Of a job that has ended on this machine it prints the last 8 to 16 MiB of each stream. A cluster keeps stdout and
    stderr as one stream, so both go to stdout.

    \b
    Examples:
      mpiboot logs pi
      mpiboot logs -f --worker 1 train

    Exit codes: 0 printed; 2 there is no such job or worker, it has not started, or the engine does not answer; 130
    ended by Ctrl-C; 141 the reader of the output is gone.
    """
    from mpiboot.engines import choose
    from mpiboot.engines.output import Output

    jobs, chosen = choose.find(job, where)
    # A worker's output is all that is printed: its lines need no prefix.
    output = Output(quiet=quiet or worker is not None, on_broken_pipe=_end_as_by_sigpipe)
    try:
        jobs.logs(chosen, output, follow=follow, worker=worker)
    except KeyboardInterrupt:
        return 130
    return 0


def _end_as_by_sigpipe() -> None:
    # At once and from whatever thread: the others wait for output until the job ends, and nothing is to be cleaned up.
    os._exit(128 + signal.SIGPIPE)
