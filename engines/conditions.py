"""What `mpiboot wait` waits for, and its exit code."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal, TypeVar

from mpiboot.engines.jobs import ENDED, NoAnswerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mpiboot.engines.jobs import State

T = TypeVar("T")
Condition = Literal["running", "succeeded", "failed", "ended", "deleted"]
CONDITIONS: tuple[Condition, ...] = ("running", "succeeded", "failed", "ended", "deleted")
OUT_OF_TIME = 124
NEVER = 1  # it does not hold, and never will
LOOK_EVERY = 0.5  # seconds


def holds(condition: Condition, state: State | None) -> bool | None:
    """Whether it holds for a job in this state, None if it may hold later. A job without a state is gone."""
    if condition == "deleted":
        return True if state is None else None
    if state is None or state in ENDED:
        return condition == state or (condition == "ended" and state is not None)
    return True if condition == state else None


def looks(look: Callable[[], T], until: float | None, note: Callable[[str], None]) -> Iterator[T]:
    """What `look` returns now and again, until a time of the monotonic clock.

    A cluster that does not answer for a while is waited for, with one note.
    """
    away = False
    while True:
        try:
            found = look()
        except NoAnswerError as error:
            if not away:
                note(f"{error}; mpiboot tries again")
            away = True
        else:
            away = False
            yield found
        left = LOOK_EVERY if until is None else min(LOOK_EVERY, until - time.monotonic())
        if left <= 0:
            return
        time.sleep(left)  # between two looks
