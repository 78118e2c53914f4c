"""A manifest of any known API version to one checked Job, or to one error that names all that is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mpiboot.job import elastic, elastic_faults, head, names, v1, v1alpha1, v1alpha2, v2beta1, wishes
from mpiboot.job.fields import Fields
from mpiboot.job.problems import ManifestError, Problem
from mpiboot.job.units import DEFAULT_PER_NODE
from mpiboot.job.values import kind
from mpiboot.job.words import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mpiboot.job.head import Head
    from mpiboot.job.manifest import Manifest
    from mpiboot.job.model import Dialect, Job

GROUP = "kubeflow.org"

# A reader gets the metadata and a cursor on `spec`. A further API version is a further line here.
READERS: Final[Mapping[Dialect, Callable[[Head, Fields], Job]]] = {
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
    """No MPIJob, or of a version that nobody knows: there is nothing more to say about it."""


def read(manifest: Manifest, *, units_per_node: int = DEFAULT_PER_NODE) -> ReadJob:
    """The job of a manifest. Raises ManifestError with every problem; the manifest itself is never changed.

    `units_per_node`: what v1alpha1 took for granted where a job does not say how many GPUs a node has.
    """
    problems: list[Problem] = []
    root = Fields(manifest, problems, (), manifest.data)
    dialect = identify(root)
    if dialect is None:
        raise UnknownError(tuple(in_order(problems)), manifest.source)
    common = head.read(root, dialect, units_per_node)
    if root.get("spec") is None:
        root.note("spec", "must be given")
        raise fault(problems, manifest)
    job = READERS[dialect](common, root.mapping("spec"))
    if job.name and (bad := names.job_name_fault(job.name, job.workers)):
        root.mapping("metadata").note("name", bad)
    problems += wishes.problems(manifest, job.annotations)
    if not any(problem.level == "error" for problem in problems):
        note_impossible(root, job)
    if any(problem.level == "error" for problem in problems):
        raise fault(problems, manifest)
    return ReadJob(job, tuple(in_order([*manifest.warnings, *problems])))


def note_impossible(root: Fields, job: Job) -> None:
    """Numbers of an elastic job that no change of its size mends: its launcher would fail again and again."""
    size, spec = elastic.of_job(job), root.mapping("spec")
    if size is None:
        return
    if job.slots_per_worker == 0:
        spec.note("slotsPerWorker", elastic_faults.NO_SLOTS)
    if elastic.is_plain(job):
        template = spec if job.dialect == "v1alpha1" else spec.mapping("mpiReplicaSpecs").mapping("Launcher")
        for wrong in elastic_faults.numbers(size):
            template.note("template", wrong)


def fault(problems: list[Problem], manifest: Manifest) -> ManifestError:
    """The error of a manifest that has one: all problems, in the order of the file."""
    return ManifestError(tuple(in_order(problems)), manifest.source)


def in_order(problems: list[Problem]) -> list[Problem]:
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
    if root.problems:
        return None
    # An object that is stored in one version may have been written for another: its dialect says so.
    spec = root.get("spec")
    dialect = (spec.get("dialect") if isinstance(spec, dict) else None) or version.partition("/")[2]
    for reader in READERS:
        if reader == dialect:
            return reader
    root.mapping("spec").note("dialect", f"must be one of {', '.join(READERS)}; is {kind(dialect)}")
    return None
