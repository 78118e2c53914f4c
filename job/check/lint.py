"""Everything that is wrong, outdated or suspicious in a file: an MPIJob, a chart's values, an old package's pods."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mpiboot.job.arrangement import arrange
from mpiboot.job.check import other_files
from mpiboot.job.check.advice import advice
from mpiboot.job.problems import ManifestError, Problem, nearest, path_text
from mpiboot.job.read.manifest import load
from mpiboot.job.read.read import UnknownError, in_order, read
from mpiboot.job.read.yaml_lines import Documents
from mpiboot.job.settings import Settings

if TYPE_CHECKING:
    from mpiboot.job.model import Job
    from mpiboot.job.read.manifest import Manifest

NEWEST = "v2beta1"


def lint(text: str, source: str, settings: Settings | None = None) -> tuple[Problem, ...]:
    """All findings, in the order of the file. Raises ManifestError for a file that cannot be read at all."""
    documents = [(data, lines) for data, lines, _ in Documents(text, source)]
    others = [problem for data, lines in documents for problem in other_files.findings(data, lines)]
    has_job = any(isinstance(data, dict) and data.get("kind") == "MPIJob" for data, _ in documents)
    if not has_job and (others or any(other_files.is_values(data) for data, _ in documents)):
        return tuple(in_order(others))
    manifest = load(text, source)
    return tuple(in_order([*of_job(manifest, settings or Settings()), *others]))


def of_job(manifest: Manifest, settings: Settings) -> list[Problem]:
    try:
        found = read(manifest, units_per_node=settings.units_per_node)
    except UnknownError:
        raise
    except ManifestError as error:
        return list(error.problems)
    known = {path_text(path): line for path, line in manifest.lines.items()}
    advised = [located(problem, known) for problem in advice(arrange(found.job, settings))]
    return [*outdated(found.job, manifest), *found.warnings, *advised]


def outdated(job: Job, manifest: Manifest) -> list[Problem]:
    if job.dialect == NEWEST:
        return []
    message = f"{job.dialect} is outdated: mpiboot convert -f {manifest.source or 'FILE'} writes the job as {NEWEST}"
    return [Problem("apiVersion", message, manifest.line(("apiVersion",)), "warning")]


def located(problem: Problem, known: dict[str, int]) -> Problem:
    """The problem with the line of its path, or of the nearest thing above it that the file has."""
    return replace(problem, line=problem.line or known.get(nearest(problem.path, known)))
