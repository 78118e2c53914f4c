"""`mpiboot ps`, `logs` and `delete`."""

from __future__ import annotations

import os
import signal
import time

import click

ANY_ENGINE = click.option("--engine", type=click.Choice(["docker", "local", "kubernetes"]),
                          help="Only jobs of this engine.  [default: of docker and local]")  # fmt: skip
NAMESPACE = click.option("-n", "--namespace", metavar="NAME",
                         help="Namespace, with --engine kubernetes.  [default: the kubeconfig's]")  # fmt: skip


@click.command
@ANY_ENGINE
@NAMESPACE
def ps(engine: str | None, namespace: str | None) -> int:
    """List the jobs on this machine, or those of a cluster, the newest first.

    Example: mpiboot ps --engine docker.

    Exit codes: 0 listed, even if there is none; 2 the engine that --engine names does not answer.
    """
    from mpiboot.engines import choose, jobs

    now = time.time()
    rows = [("JOB", "ENGINE", "STATE", "WORKERS", "AGE", "IMAGE")]
    rows += [
        (job.name, job.engine, job.state, str(job.workers), jobs.age(now - job.created), job.image)
        for job in jobs.newest_first(choose.jobs_of_engines(engine, namespace))
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip())
    return 0


@click.command
@click.argument("job")
@click.option("-f", "--follow", is_flag=True, help="Print new output until the job ends.")
@click.option("-q", "--quiet", is_flag=True, help="Print only what the launcher prints.")
@ANY_ENGINE
@NAMESPACE
def logs(job: str, follow: bool, quiet: bool, engine: str | None, namespace: str | None) -> int:
    """Print the output of a JOB: the launcher's stdout to stdout, everything else to stderr.

    Example: mpiboot logs -f pi.

    Exit codes: 0 printed; 2 there is no such job, or the engine does not answer; 141 the reader of the output is gone.
    """
    from mpiboot.engines import choose, jobs
    from mpiboot.engines.output import Output

    found = choose.jobs_of_engines(engine, namespace)
    chosen = jobs.named(job, found)[0]
    output = Output(quiet=quiet, on_broken_pipe=_end_as_by_sigpipe)
    try:
        found[chosen.engine].logs(chosen, output, follow=follow)
    except KeyboardInterrupt:
        return 130
    return 0


def _end_as_by_sigpipe() -> None:
    # At once and from whatever thread: the others wait for output until the job ends, and nothing is to be cleaned up.
    os._exit(128 + signal.SIGPIPE)


@click.command
@click.argument("names", nargs=-1, metavar="JOB...", required=True)
@ANY_ENGINE
@NAMESPACE
def delete(names: tuple[str, ...], engine: str | None, namespace: str | None) -> int:
    """End each JOB and remove all that belongs to it.

    Example: mpiboot delete pi train.

    Exit codes: 0 all are gone; 1 the engine did not remove something; 2 there is no such job.
    """
    from mpiboot.engines import choose, jobs

    found = choose.jobs_of_engines(engine, namespace)
    chosen = [job for name in names for job in jobs.named(name, found)]
    for job in chosen:
        found[job.engine].delete(job)
        print(f"{job.name} is gone ({job.engine})")
    return 0
