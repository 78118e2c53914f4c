"""`mpiboot lint`."""

from __future__ import annotations

import click


@click.command
@click.option("-f", "--file", "path", required=True, metavar="FILE",
              help="Manifest, or a chart's values; - reads stdin.")  # fmt: skip
@click.option("--gpus-per-node", type=click.IntRange(min=1), default=8, show_default=True, metavar="N",
              help="GPUs of a node, for v1alpha1 jobs without gpusPerNode.")  # fmt: skip
def lint(path: str, gpus_per_node: int) -> int:
    """Print what is wrong or outdated in a manifest of any version, a line for each finding.

    Example: mpiboot lint -f job.yaml.

    Exit codes: 0 no findings; 1 there are findings; 2 the file cannot be checked: it is not YAML, holds two MPIJobs, or
    has a version that mpiboot does not know.
    """
    from mpiboot.engines import request
    from mpiboot.job.check.lint import lint as look
    from mpiboot.job.problems import marked
    from mpiboot.job.settings import Settings

    source = "stdin" if path == "-" else path
    findings = look(request.text_of(path), source, Settings(units_per_node=gpus_per_node))
    for problem in findings:
        print(marked(problem).text(source))
    return 1 if findings else 0
