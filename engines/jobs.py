"""The jobs of an engine, for `mpiboot ps`, `logs`, `scale` and `delete`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from mpiboot.job.errors import UserError
from mpiboot.job.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpiboot.engines.output import Output


@dataclass(frozen=True)
class JobInfo:
    """A job as `mpiboot ps` shows it. `run` differs for each start; `created` is in seconds since 1970."""

    name: str
    engine: str
    state: str
    workers: int
    created: float
    image: str
    run: str


class Jobs(Protocol):
    """The jobs of one engine. `where` they are, in words that end a sentence; empty: on this machine."""

    @property
    def where(self) -> str: ...

    def all(self) -> Sequence[JobInfo]:
        """All jobs, by name."""

    def logs(self, job: JobInfo, output: Output, *, follow: bool) -> None:
        """Write what the job has printed; with `follow` also what it prints until it ends."""

    def delete(self, job: JobInfo) -> None:
        """End the job and remove all that belongs to it; returns when it is gone."""

    def scale(self, job: JobInfo, workers: int) -> int:
        """Give an elastic job this number of workers; returns when it has them. The result is the number before."""


def newest_first(engines: Mapping[str, Jobs]) -> list[JobInfo]:
    """All jobs of all engines."""
    return sorted((job for jobs in engines.values() for job in jobs.all()), key=lambda job: -job.created)


def named(name: str, engines: Mapping[str, Jobs]) -> list[JobInfo]:
    """The jobs of that name; an error with the nearest names if there is none."""
    known = newest_first(engines)
    found = [job for job in known if job.name == name]
    if found:
        return found
    names = sorted({job.name for job in known})
    others = f"known: {', '.join(names[:10])}" if names else "there is no job at all"
    where = "".join({jobs.where for jobs in engines.values()})
    raise UserError(f"there is no job named {name}{where}; {did_you_mean(name, names) or others}")


def not_elastic(name: str) -> str:
    """Why the number of its workers is fixed."""
    return (
        f"{name} is not elastic, so it keeps the workers it began with: its command has no --host-discovery-script, "
        "and MPIBOOT_MIN_WORKERS is not set"
    )


def age(seconds: float) -> str:
    """How long ago, short: 12s, 5m, 3h, 2d."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"
