"""Contradictions in the numbers of an elastic job, one line each. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mpiboot.job.elastic import Elastic


NO_SLOTS = "slotsPerWorker is 0, so no worker of this elastic job takes a rank; give it at least 1"


def faults(wanted: Elastic, slots: int) -> Iterator[str]:
    """Mistakes that no number of workers corrects."""
    if slots == 0:
        yield NO_SLOTS
    yield from numbers(wanted)


def numbers(wanted: Elastic) -> Iterator[str]:
    """Contradictions between its numbers of ranks."""
    low, first, high = wanted.min_processes, wanted.processes, wanted.max_processes
    if low is not None and high is not None and low > high:
        yield f"--min-np {low} is more than --max-np {high}; no number of ranks is both"
    elif first is not None and high is not None and first > high:
        yield f"-np {first} is more than --max-np {high}; begin with fewer ranks or allow more"
    elif first is not None and low is not None and first < low:
        yield f"-np {first} is less than --min-np {low}; begin with more ranks or lower --min-np"


def too_few(wanted: Elastic, workers: int, slots: int) -> str:
    """Why so many workers are not enough to begin; empty if they are."""
    first = wanted.first_workers(slots)
    if slots == 0 or first <= workers:
        return ""
    have = f"{workers} {'worker' if workers == 1 else 'workers'} with {slots} slot{'' if slots == 1 else 's'} each"
    if first > wanted.fewest_workers(slots) or not (wanted.min_processes or wanted.min_workers >= first):
        why = f"-np {wanted.processes}"
    elif wanted.min_workers >= first:
        why = f"--min-workers {wanted.min_workers}"
    else:
        why = f"--min-np {wanted.min_processes}"
    return f"{why} needs {first} workers, but the job has {have}"


def out_of_range(wanted: Elastic, workers: int, slots: int) -> str:
    """Why a running job cannot have so many workers; empty if it can."""
    fewest, most = wanted.fewest_workers(slots), wanted.most_workers(slots)
    if workers < fewest:
        return f"{workers} is too few: the job needs at least {fewest}{_by('--min-np', wanted.min_processes, slots)}"
    if most is not None and workers > most:
        return f"{workers} is too many: the job takes at most {most}{_by('--max-np', wanted.max_processes, slots)}"
    return ""


def _by(option: str, number: int | None, slots: int) -> str:
    return "" if number is None else f" ({option} {number}, {slots} slot{'' if slots == 1 else 's'} a worker)"
