"""Whether a job is elastic: its command continues when workers go, and uses new workers."""

# The launcher imports this when process 1 starts: import nothing here that takes time.
from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mpiboot.job.template import main_container, split, words
from mpiboot.job.values import natural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from mpiboot.job.model import Job

DISCOVERY = "--host-discovery-script"
MIN_WORKERS = "MPIBOOT_MIN_WORKERS"

# All names of each number, in horovodrun and in `mpiboot launch`.
PROCESSES = ("-np", "--num-proc")
FEWEST = ("--min-np", "--min-num-proc")
MOST = ("--max-np", "--max-num-proc")
OUR_FEWEST = ("--min-workers",)


class Elastic(NamedTuple):
    """The sizes that an elastic job asks for. None: not given."""

    processes: int | None = None  # ranks to begin with
    min_processes: int | None = None  # with fewer ranks it waits
    max_processes: int | None = None  # it takes no more than these
    min_workers: int = 0  # MPIBOOT_MIN_WORKERS; 0: not given

    def fewest_workers(self, slots: int) -> int:
        """The fewest workers, with so many slots each, with which the job continues: at least one."""
        wanted = self.min_processes or self.processes or 1
        return max(self.min_workers, -(-wanted // max(slots, 1)), 1)

    def first_workers(self, slots: int) -> int:
        """How many workers its first ranks fill: a job needs more workers to begin than to continue."""
        return max(self.fewest_workers(slots), -(-(self.processes or 1) // max(slots, 1)))

    def most_workers(self, slots: int) -> int | None:
        """How many workers its largest number of ranks fills. None: any number."""
        return None if self.max_processes is None else -(-self.max_processes // max(slots, 1))


def of_words(command: Iterable[str], min_workers: int = 0) -> Elastic | None:
    """The sizes in a launcher's command; None if its job is not elastic.

    A discovery script makes a job elastic, and so does `min_workers`, the number of workers that is enough. Our option
    in the command takes precedence over `min_workers`.
    """
    given = split(command)
    fewest = number(given, OUR_FEWEST)
    min_workers = min_workers if fewest is None else fewest
    if min_workers <= 0 and not any(word.partition("=")[0] == DISCOVERY for word in given):
        return None
    return Elastic(number(given, PROCESSES), number(given, FEWEST), number(given, MOST), max(min_workers, 0))


def of_job(job: Job) -> Elastic | None:
    """The sizes that a job asks for; None if it is not elastic."""
    container = _launcher(job)
    return of_words(words(container), least_of(container))


def enough_workers(job: Job) -> int:
    """With how many workers a job can begin."""
    size = of_job(job)
    return min(size.fewest_workers(job.slots_per_worker), job.workers) if size else job.workers


def is_plain(job: Job) -> bool:
    """Whether its numbers certainly belong to its elastic program: a shell script may hold others."""
    return any(word.partition("=")[0] == DISCOVERY for word in words(_launcher(job)))


def least_of(container: Mapping[str, Any]) -> int:
    """MPIBOOT_MIN_WORKERS of a container, from its last such entry; 0 if it is not a number."""
    found = [item for item in container.get("env") or () if isinstance(item, dict) and item.get("name") == MIN_WORKERS]
    value = str(found[-1].get("value")) if found else ""
    return natural(value) or 0


def _launcher(job: Job) -> Mapping[str, Any]:
    return main_container(job.launcher.template, job.main_container)


def number(given: list[str], names: tuple[str, ...]) -> int | None:
    """The number after the first of these options, as `--min-np 2` or `--min-np=2`."""
    for position, word in enumerate(given):
        name, equals, joined = word.partition("=")
        if name in names:
            value = joined if equals else "".join(given[position + 1 : position + 2])
            return natural(value)
    return None
