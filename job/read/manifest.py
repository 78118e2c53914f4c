"""Finds the one MPIJob in a manifest's text, with the line of every path in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from mpiboot.job.problems import ManifestError, Problem
from mpiboot.job.read.yaml_lines import Documents

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.job.problems import Path
    from mpiboot.job.values import Json


@dataclass(frozen=True)
class Manifest:
    """An object as its user wrote it. Without `lines` (it came from an API server, say) problems carry only paths."""

    data: Mapping[str, Any]
    source: str = ""
    lines: Mapping[Path, int] = field(default_factory=dict)
    warnings: tuple[Problem, ...] = ()

    def line(self, path: Path) -> int | None:
        """The line of a path, or of the nearest thing above it that the file has."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)


def load(text: str, source: str) -> Manifest:
    """The one MPIJob in a file's text, not yet checked. `source` is the file's name, for messages.

    Objects of other kinds beside it are left out with a warning; a second MPIJob is an error.
    """
    documents: list[Manifest] = []
    for data, lines, line in Documents(text, source):
        if not isinstance(data, dict):
            refuse(f"must be an MPIJob, a mapping of keys to values; is {describe(data)}", line, source)
        documents.append(Manifest(data, source, lines))
    if not documents:
        refuse("is empty; it must hold an MPIJob", None, source)
    jobs = [document for document in documents if document.data.get("kind") == "MPIJob"]
    if len(jobs) > 1:
        names = ", ".join(f"{describe(job.data)} (line {job.line(())})" for job in jobs)
        refuse(f"holds {len(jobs)} MPIJobs: {names}; put each in a file of its own", jobs[1].line(()), source)
    if len(documents) == 1:
        return documents[0]  # of whatever kind: the reader says what it should be
    if not jobs:
        refuse(f"holds no MPIJob, only {', '.join(describe(other.data) for other in documents)}", None, source)
    left_out = tuple(
        Problem("", f"{describe(other.data)} is ignored: only the MPIJob is used", other.line(()), "warning")
        for other in documents
        if other is not jobs[0]
    )
    return Manifest(jobs[0].data, source, jobs[0].lines, left_out)


def describe(data: Json) -> str:
    """What a document is, in a few words: `ConfigMap settings`, `a list`."""
    if isinstance(data, dict):
        metadata = data.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return " ".join(str(part) for part in (data.get("kind") or "an object without kind", name) if part)
    return {list: "a list", str: "text", bool: "true or false"}.get(type(data), "a number")


def refuse(message: str, line: int | None, source: str) -> NoReturn:
    raise ManifestError((Problem("", message, line),), source)
