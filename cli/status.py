"""`mpiboot status`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from mpiboot.controller.remote import Remote


@click.command
@click.argument("job")
@click.option("-n", "--namespace", metavar="NAME", help="Namespace of the job.  [default: the kubeconfig's]")
def status(job: str, namespace: str | None) -> int:
    """Show how a JOB of a cluster stands: what is up, what is missing and why, what happened when.

    Exit codes: 0 shown; 2 there is no such job, or no cluster answers.
    """
    from mpiboot.cli.cluster import on_cluster
    from mpiboot.controller.story import story

    async def work(found: Remote) -> int:
        print(story(await found.look(job)))
        return 0

    return on_cluster(namespace, work)
