"""Signals that end a check once, and by an exception, so that all its containers go."""

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
    """Within, the first signal raises in the main thread: SystemExit with 128 + signal. Later ones are ignored.

    So somebody who presses Ctrl-C twice does not interrupt the removal of the containers, which takes a second or two.
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
