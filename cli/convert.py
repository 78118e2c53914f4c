"""`mpiboot convert`."""

from __future__ import annotations

import click


@click.command
@click.option("-f", "--file", "path", required=True, metavar="FILE", help="Manifest of an MPIJob; - reads stdin.")
@click.option("--gpus-per-node", type=click.IntRange(min=1), default=8, show_default=True, metavar="N",
              help="GPUs of a node, for v1alpha1 jobs without gpusPerNode.")  # fmt: skip
def convert(path: str, gpus_per_node: int) -> int:
    """Print a job of any version as v2beta1, with a comment at each field that changed or was dropped.

    Example: mpiboot convert -f old.yaml > new.yaml. Comments of the file itself are lost.

    Exit codes: 0 printed; 2 the job could not run as it is, or the file is
    no manifest.
    """
    from mpiboot.engines import request
    from mpiboot.job.check.convert import convert as converted
    from mpiboot.job.read import manifest
    from mpiboot.job.settings import Settings

    source = "stdin" if path == "-" else path
    loaded = manifest.load(request.text_of(path), source)
    for warning in loaded.warnings:
        click.echo(f"mpiboot: warning: {warning.text(source)}", err=True)
    click.echo(converted(loaded, Settings(units_per_node=gpus_per_node)), nl=False)
    return 0
