"""`mpiboot status`."""

from __future__ import annotations

import click


@click.command
@click.argument("job")
@click.option("-n", "--namespace", metavar="NAME", help="Namespace of the job.  [default: the kubeconfig's]")
def status(job: str, namespace: str | None) -> int:
    """Show the state of a JOB on a cluster: its pods, what is missing and why, and its conditions with their times.

    Exit codes: 0 shown; 2 there is no such job, or no cluster answers.
    """
    from mpiboot.engines import jobs
    from mpiboot.engines.kubernetes.cluster import Cluster
    from mpiboot.engines.kubernetes.jobs import KubernetesJobs

    found = KubernetesJobs(Cluster(namespace))
    print(found.status(jobs.named(job, {"kubernetes": found})[0]))
    return 0
