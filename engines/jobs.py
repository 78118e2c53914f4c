"""The jobs of an engine, for `mpiboot ps`, `logs`, `status`, `events`, `wait`, `shell`, `scale` and `delete`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from mpiboot.job.errors import UserError
from mpiboot.job.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mpiboot.engines.output import Output

# left-over: the `mpiboot run` of the job was killed, and what is left of it does not run.
State = Literal["pending", "running", "restarting", "suspended", "succeeded", "failed", "left-over"]
ENDED: frozenset[State] = frozenset({"succeeded", "failed", "left-over"})


@dataclass(frozen=True)
class JobInfo:
    """A job as `mpiboot ps` shows it. Times are in seconds since 1970."""

    name: str
    engine: str
    state: State
    workers: int
    created: float
    image: str
    run: str  # differs for each start
    namespace: str = ""
    ended: float | None = None
    exit_code: int | None = None
    reason: str = ""

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED

    @property
    def outcome(self) -> str:
        """The state, with the exit code of a failure."""
        code = f", exit {self.exit_code}" if self.state == "failed" and self.exit_code is not None else ""
        return self.state.replace("-", " ") + code


@dataclass(frozen=True)
class Process:
    """A launcher or a worker, which is a container, a process of this machine or a pod."""

    name: str  # launcher, worker-0
    state: Literal["pending", "running", "ended"]
    ready: bool | None = None  # None: only the launcher knows
    exit_code: int | None = None
    restarts: int = 0
    id: str = ""  # of the container, process or pod
    host: str = ""  # the node
    reason: str = ""  # what is wrong with it, or what it waits for


@dataclass(frozen=True)
class JobEvent:
    """Something that happened to a job or to one of its objects."""

    time: float  # seconds since 1970
    type: str  # Normal or Warning
    reason: str
    object: str
    message: str = ""
    count: int = 1


@dataclass(frozen=True)
class JobStatus:
    """All that is known of how a job stands. `summary` is a line; `timeline` has times in seconds since 1970."""

    job: JobInfo
    summary: str
    processes: tuple[Process, ...]
    timeline: tuple[tuple[float, str], ...]


class Jobs(Protocol):
    """The jobs of one engine. `where` they are, in words that end a sentence; empty: on this machine."""

    @property
    def where(self) -> str: ...

    def all(self) -> Sequence[JobInfo]:
        """All jobs, by name; those that have ended as far as they are still there."""

    def again(self, job: JobInfo) -> JobInfo | None:
        """The same job now; None if it is gone. NoAnswerError if that cannot be found out now."""

    def status(self, job: JobInfo) -> JobStatus:
        """How the job stands."""

    def events(self, job: JobInfo) -> Sequence[JobEvent]:
        """What happened, in the order of time."""

    def logs(self, job: JobInfo, output: Output, *, follow: bool, worker: int | None = None) -> None:
        """Write what the job has printed; with `follow` also what it prints until it ends.

        With `worker` only that worker's output, which is then written as a launcher's.
        """

    def shell(self, job: JobInfo, process: str, command: Sequence[str]) -> int:
        """Run a command, or an interactive shell, where a process of the job runs; its exit code."""

    def delete(self, job: JobInfo) -> None:
        """End the job and remove all that belongs to it; returns when it is gone."""

    def scale(self, job: JobInfo, workers: int, warn: Callable[[str], None]) -> int:
        """Give an elastic job this number of workers; returns when it has them. The result is the number before.

        `warn` gets what the user should know before it happens.
        """


class NoSuchJobError(UserError):
    """There is no job of that name."""


class NoAnswerError(UserError):
    """The cluster does not answer for now."""


def newest_first(engines: Mapping[str, Jobs]) -> list[JobInfo]:
    """All jobs of all engines."""
    return sorted((job for jobs in engines.values() for job in jobs.all()), key=lambda job: -job.created)


def named(name: str, engines: Mapping[str, Jobs]) -> list[JobInfo]:
    """The jobs of that name, those that have not ended first; an error with the nearest names if there is none."""
    known = newest_first(engines)
    found = [job for job in known if job.name == name]
    if found:
        return sorted(found, key=lambda job: job.has_ended)
    names = sorted({job.name for job in known})
    others = f"known: {', '.join(names[:10])}" if names else "there is no job at all"
    where = "".join({jobs.where for jobs in engines.values()})
    raise NoSuchJobError(f"there is no job named {name}{where}; {did_you_mean(name, names) or others}")


def not_elastic(name: str) -> str:
    """Why the number of its workers is fixed."""
    return (
        f"{name} is not elastic, so it keeps the workers it began with: its command has no --host-discovery-script, "
        "and MPIBOOT_MIN_WORKERS is not set"
    )


def no_such_process(job: JobInfo, process: str) -> UserError:
    """The job has no process of this name now."""
    last = job.workers - 1
    workers = "and no worker" if last < 0 else "and worker-0" if last == 0 else f"and worker-0 to worker-{last}"
    state = f"; it has ended ({job.outcome})" if job.has_ended else ""
    return UserError(f"{job.name} has no running {process}: it has a launcher {workers}{state}")


def age(seconds: float) -> str:
    """How long ago, short: 12s, 5m, 3h, 2d."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"
