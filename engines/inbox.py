"""What happens to a job while its terminal waits: values in one queue, read by the main thread only.

All that could block (an engine's answers, a program's output) happens in other threads, so a signal is acted on at once
and never cuts a request in two: a request cut in two leaves things behind that nobody knows of.
"""

from __future__ import annotations

import queue
import signal
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LAUNCHER = "launcher"
# The first ends the job, the second kills it. Whoever goes on asks an engine that hangs, and may leave it as it is.
ENOUGH = 3


@dataclass(frozen=True)
class Ended:
    """A process of the job is gone. `reason` says more than the code, if more is known."""

    who: str
    code: int
    reason: str = ""


@dataclass(frozen=True)
class Interrupted:
    """The user (or whoever started us) wants the job to end."""

    signum: int


@dataclass(frozen=True)
class Broke:
    """A thread met an error: it ends the job."""

    error: BaseException


Event = Ended | Interrupted | Broke

# A queue whose put() may interrupt its own get() in the same thread, as signal handlers do.
Inbox = queue.SimpleQueue


def background(inbox: Inbox[Event], work: Callable[[], None], name: str) -> threading.Thread:
    """A started thread that does `work`; an error in it arrives in the inbox."""

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 (nothing may die unheard)
            inbox.put(Broke(error))

    thread = threading.Thread(target=guarded, name=name, daemon=True)
    thread.start()
    return thread


@contextmanager
def signals_to(inbox: Inbox[Event]) -> Iterator[None]:
    """While this lasts, signals that ask for the end arrive in the inbox. One ignored before (nohup) stays ignored."""
    before = {}
    asked = 0

    def heard(number: int, _: object) -> None:
        nonlocal asked
        asked += 1
        inbox.put(Interrupted(number))
        if asked >= ENOUGH:
            signal.signal(number, signal.SIG_DFL)

    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(signum) != signal.SIG_IGN:
            before[signum] = signal.signal(signum, heard)
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
