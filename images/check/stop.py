"""Turns the first signal into an exception, so that a check or a build removes what it made."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def stopping_by_signal() -> Iterator[None]:
    """Inside the block, the first signal raises SystemExit(128 + signal) in the main thread. It ignores later signals.

    So a second Ctrl-C does not interrupt the removal of the containers, which takes a second or two.
    """
    before = {number: signal.signal(number, _stop) for number in ENDING}
    try:
        yield
    finally:
        # After a first signal the process is about to end, and a second one must not change how.
        if signal.getsignal(signal.SIGINT) is _stop:
            for number, handler in before.items():
                signal.signal(number, handler)


def _stop(number: int, _: FrameType | None) -> NoReturn:
    for ending in ENDING:
        signal.signal(ending, signal.SIG_IGN)
    raise SystemExit(128 + number)
