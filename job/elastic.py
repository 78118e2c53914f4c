"""Whether a job is elastic: its command goes on when workers go, and takes new ones in. One answer for all who ask."""

# The launcher asks too, at PID 1's start: nothing is imported here that takes time.
from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from mpiboot.job.model import Job

DISCOVERY = "--host-discovery-script"
MIN_WORKERS = "MPIBOOT_MIN_WORKERS"

# Each number by all the names that horovodrun, and `mpiboot launch`, have for it.
PROCESSES = ("-np", "--num-proc")
FEWEST = ("--min-np", "--min-num-proc")
MOST = ("--max-np", "--max-num-proc")
OUR_FEWEST = ("--min-workers",)


class Elastic(NamedTuple):
    """What an elastic job says of its size. None: it does not say."""

    processes: int | None = None  # ranks to begin with
    min_processes: int | None = None  # with fewer ranks it waits
    max_processes: int | None = None  # it takes no more than these
    min_workers: int = 0  # MPIBOOT_MIN_WORKERS; 0: not given

    def fewest_workers(self, slots: int) -> int:
        """How many workers with so many slots each it takes to go on: at least one."""
        wanted = self.min_processes or self.processes or 1
        return max(self.min_workers, -(-wanted // max(slots, 1)), 1)

    def first_workers(self, slots: int) -> int:
        """How many workers its first ranks fill: what suffices to go on is not enough to begin."""
        return max(self.fewest_workers(slots), -(-(self.processes or 1) // max(slots, 1)))

    def most_workers(self, slots: int) -> int | None:
        """How many workers its largest number of ranks fills. None: as many as there are."""
        return None if self.max_processes is None else -(-self.max_processes // max(slots, 1))


def of_words(command: Iterable[str], min_workers: int = 0) -> Elastic | None:
    """What a launcher's command says, or None if its job is not elastic.

    A discovery script makes a job elastic, and so does a number of workers that suffice: `min_workers`, which an option
    of ours in the command beats.
    """
    words = [part.strip("'\";") for word in command for part in word.split()]  # `bash -c` has it all in one word
    fewest = number(words, OUR_FEWEST)
    min_workers = min_workers if fewest is None else fewest
    if min_workers <= 0 and not any(word.partition("=")[0] == DISCOVERY for word in words):
        return None
    return Elastic(number(words, PROCESSES), number(words, FEWEST), number(words, MOST), max(min_workers, 0))


def of_job(job: Job) -> Elastic | None:
    """What a job says, or None if it is not elastic."""
    container = _launcher(job)
    return of_words(_words(container), least_of(container))


def is_plain(job: Job) -> bool:
    """Whether its numbers are surely those of its elastic program: in a shell's words there may be others."""
    return any(word.partition("=")[0] == DISCOVERY for word in _words(_launcher(job)))


def least_of(container: Mapping[str, Any]) -> int:
    """MPIBOOT_MIN_WORKERS of a container, as the last such entry says; what is no number counts as not given."""
    found = [item for item in container.get("env") or () if isinstance(item, dict) and item.get("name") == MIN_WORKERS]
    value = str(found[-1].get("value")) if found else ""
    return int(value) if value.isdecimal() else 0


def _launcher(job: Job) -> Mapping[str, Any]:
    from mpiboot.job import pods

    return pods.main_container(job.launcher.template, job.main_container)


def _words(container: Mapping[str, Any]) -> list[str]:
    return [str(word) for word in (*(container.get("command") or ()), *(container.get("args") or ()))]


def number(words: list[str], names: tuple[str, ...]) -> int | None:
    """The number after the first of these options, as `--min-np 2` or `--min-np=2`."""
    for position, word in enumerate(words):
        name, equals, joined = word.partition("=")
        if name in names:
            value = joined if equals else "".join(words[position + 1 : position + 2])
            return int(value) if value.isdecimal() else None
    return None
