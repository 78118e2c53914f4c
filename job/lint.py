"""What is wrong, outdated or not what its user means in a file of any of the families that people have."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mpiboot.job import families
from mpiboot.job.advice import advice
from mpiboot.job.manifest import load
from mpiboot.job.problems import ManifestError, Problem, path_text
from mpiboot.job.read import UnknownError, in_order, read
from mpiboot.job.settings import Settings
from mpiboot.job.yaml_lines import Documents

if TYPE_CHECKING:
    from mpiboot.job.manifest import Manifest
    from mpiboot.job.model import Job

NEWEST = "v2beta1"


def lint(text: str, source: str, settings: Settings | None = None) -> tuple[Problem, ...]:
    """All findings, in the file's order. Raises ManifestError for a file that is nothing one could look at."""
    documents = [(data, lines) for data, lines, _ in Documents(text, source)]
    others = [problem for data, lines in documents for problem in families.findings(data, lines)]
    has_job = any(isinstance(data, dict) and data.get("kind") == "MPIJob" for data, _ in documents)
    if not has_job and (others or any(families.is_values(data) for data, _ in documents)):
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
    told = [located(problem, known) for problem in advice(found.job, settings)]
    return [*outdated(found.job, manifest), *found.warnings, *told]


def outdated(job: Job, manifest: Manifest) -> list[Problem]:
    if job.dialect == NEWEST:
        return []
    message = f"{job.dialect} is outdated: mpiboot convert -f {manifest.source or 'FILE'} writes the job as {NEWEST}"
    return [Problem("apiVersion", message, manifest.line(("apiVersion",)), "warning")]


def located(problem: Problem, known: dict[str, int]) -> Problem:
    """The problem with the line of its path, or of the nearest thing above it that the file has."""
    path = problem.path
    while path and path not in known:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return replace(problem, line=problem.line or known.get(path))
