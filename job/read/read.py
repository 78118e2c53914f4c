"""Reads a manifest of any known API version: one checked Job, or one error that names everything that is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mpiboot.job import elastic, elastic_faults, job_annotations, names
from mpiboot.job.gpu_units import DEFAULT_PER_NODE
from mpiboot.job.problems import ManifestError, Problem, Problems
from mpiboot.job.read import metadata, v1, v1alpha1, v1alpha2, v2beta1
from mpiboot.job.read.fields import MOST_WORKERS, Fields, size_fault
from mpiboot.job.suggestions import nearest
from mpiboot.job.values import kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mpiboot.job.model import Dialect, Job
    from mpiboot.job.read.manifest import Manifest
    from mpiboot.job.read.metadata import Metadata

GROUP = "kubeflow.org"

# A reader gets the metadata and a cursor on `spec`. A new API version is a new line here.
READERS: Final[Mapping[Dialect, Callable[[Metadata, Fields], Job]]] = {
    "v2beta1": v2beta1.read,
    "v1": v1.read,
    "v1alpha2": v1alpha2.read,
    "v1alpha1": v1alpha1.read,
}


@dataclass(frozen=True)
class ReadJob:
    """A job that can run, and what its user should know about the manifest."""

    job: Job
    warnings: tuple[Problem, ...] = ()


class UnknownError(ManifestError):
    """Not an MPIJob, or one of an unknown version: nothing else in it can be checked."""


def read(
    manifest: Manifest, *, units_per_node: int = DEFAULT_PER_NODE, max_workers: int = MOST_WORKERS
) -> ReadJob:
    """The job of a manifest. Raises ManifestError with every problem; the manifest itself is never changed.

    `units_per_node`: what v1alpha1 took for granted where a job does not say how many GPUs a node has.
    """
    problems = Problems()
    root = Fields(manifest, problems, (), manifest.data)
    if too_large := size_fault(root.get("spec")):
        root.note("spec", too_large)
        raise ManifestError(problems.all(), manifest.source)
    dialect = identify(root)
    if dialect is None:
        raise UnknownError(problems.all(), manifest.source)
    common = metadata.read(root, dialect, units_per_node)
    if root.get("spec") is None:
        root.note("spec", "must be given")
        raise ManifestError(problems.all(), manifest.source)
    job = READERS[dialect](common, root.mapping("spec"))
    if job.workers > max_workers:
        note_too_many(root, job, max_workers)
    if job.name and (bad := names.job_name_fault(job.name, job.workers)):
        root.mapping("metadata").note("name", bad)
    problems.add(job_annotations.problems(manifest, job.annotations))
    if not problems.any_error:
        note_impossible(root, job)
    if problems.any_error:
        raise ManifestError(problems.all(), manifest.source)
    problems.add(manifest.warnings)
    return ReadJob(job, problems.all())


def note_too_many(root: Fields, job: Job, most: int) -> None:
    spec = root.mapping("spec")
    if job.dialect == "v1alpha1":
        spec.note(None, f"makes {job.workers} workers, at most {most} are possible")
    else:
        worker = spec.mapping("mpiReplicaSpecs").mapping("Worker")
        worker.note("replicas", f"must be <= {most}, is {job.workers}")


def note_impossible(root: Fields, job: Job) -> None:
    """Numbers of an elastic job that contradict each other: its launcher would fail at every attempt."""
    size, spec = elastic.of_job(job), root.mapping("spec")
    if size is None:
        return
    if job.slots_per_worker == 0:
        spec.note("slotsPerWorker", elastic_faults.NO_SLOTS)
    if elastic.is_plain(job):
        template = spec if job.dialect == "v1alpha1" else spec.mapping("mpiReplicaSpecs").mapping("Launcher")
        for wrong in elastic_faults.numbers(size):
            template.note("template", wrong)


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """The problems as the file has them, each once."""
    return sorted(dict.fromkeys(problems), key=lambda problem: problem.line or 0)


def identify(root: Fields) -> Dialect | None:
    """Which reader an object needs, or None after noting why there is none."""
    known = [f"{GROUP}/{version}" for version in READERS]
    version = root.get("apiVersion")
    if root.get("kind") != "MPIJob":
        root.note("kind", f"must be MPIJob, is {kind(root.get('kind'))}")
    if version not in known:
        guess = nearest(version, known) if isinstance(version, str) else ""
        root.note("apiVersion", f"must be one of {', '.join(known)}; is {kind(version)}{guess}")
    if root.problems.any_error:
        return None
    # An object that is stored in one version may have been written for another: its dialect says so.
    spec = root.get("spec")
    dialect = (spec.get("dialect") if isinstance(spec, dict) else None) or version.partition("/")[2]
    for reader in READERS:
        if reader == dialect:
            return reader
    root.mapping("spec").note("dialect", f"must be one of {', '.join(READERS)}; is {kind(dialect)}")
    return None
