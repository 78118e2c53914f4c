"""`mpiboot ps`, `logs` and `delete`."""

from __future__ import annotations

import sys
import time

import click

ENGINE = click.option("--engine", type=click.Choice(["docker", "local"]),
                      help="Only jobs of this engine.  [default: of all]")  # fmt: skip
ANY_ENGINE = click.option("--engine", type=click.Choice(["docker", "local", "kubernetes"]),
                          help="Only jobs of this engine.  [default: of docker and local]")  # fmt: skip
NAMESPACE = click.option("-n", "--namespace", metavar="NAME",
                         help="Namespace of a job of --engine kubernetes.  [default: the kubeconfig's]")  # fmt: skip


@click.command
@ENGINE
def ps(engine: str | None) -> int:
    """List the jobs on this machine, the newest first.

    Exit codes: 0 listed, even if there is none; 2 the engine that was asked for does not answer.
    """
    from mpiboot.engines import jobs

    now = time.time()
    rows = [("JOB", "ENGINE", "STATE", "WORKERS", "AGE", "IMAGE")]
    rows += [
        (job.name, job.engine, job.state, str(job.workers), jobs.age(now - job.created), job.image)
        for job in jobs.every(jobs.engines(engine))
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip())
    return 0


@click.command
@click.argument("job")
@click.option("-f", "--follow", is_flag=True, help="Go on until the job ends.")
@click.option("-q", "--quiet", is_flag=True, help="Print only what the launcher prints.")
@ANY_ENGINE
@NAMESPACE
def logs(job: str, follow: bool, quiet: bool, engine: str | None, namespace: str | None) -> int:
    """Print the output of a JOB: the launcher's stdout to stdout, everything else to stderr.

    Exit codes: 0 printed; 2 there is no such job, or the engine does not answer.
    """
    if engine == "kubernetes":
        from mpiboot.cli import cluster

        return cluster.logs(job, namespace, follow=follow)
    from mpiboot.engines import jobs
    from mpiboot.engines.output import Output

    found = jobs.engines(engine)
    chosen = jobs.named(job, jobs.every(found))[0]
    output = Output(quiet=quiet, broken=lambda: sys.exit(141))
    try:
        found[chosen.engine].logs(chosen, output, follow=follow)
    except KeyboardInterrupt:
        return 130
    return 0


@click.command
@click.argument("names", nargs=-1, metavar="JOB...", required=True)
@ANY_ENGINE
@NAMESPACE
def delete(names: tuple[str, ...], engine: str | None, namespace: str | None) -> int:
    """End each JOB and remove all that belongs to it.

    Exit codes: 0 gone; 1 the engine would not remove something; 2 there is no such job.
    """
    if engine == "kubernetes":
        from mpiboot.cli import cluster

        return max(cluster.delete(name, namespace) for name in names)
    from mpiboot.engines import jobs

    found = jobs.engines(engine)
    known = jobs.every(found)
    chosen = [job for name in names for job in jobs.named(name, known)]
    for job in chosen:
        found[job.engine].delete(job)
        print(f"{job.name} is gone ({job.engine})")
    return 0
