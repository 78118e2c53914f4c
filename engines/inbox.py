"""What happens to a job while its terminal waits: values in one queue, read by the main thread only.

All that could block (an engine's answers, a program's output) happens in other threads, so a signal is acted on at once
and never cuts a request in two: a request cut in two leaves things behind that nobody knows of.
"""

from __future__ import annotations

import os
import queue
import signal
import socket
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LAUNCHER = "launcher"
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
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


@dataclass(frozen=True)
class Resize:
    """Somebody wants an elastic job to have so many workers."""

    workers: int


Event = Ended | Interrupted | Broke | Resize

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
    """While this lasts, signals that ask for the end arrive in the inbox. One ignored before (nohup) stays ignored.

    They come by a thread of their own: a handler of Python runs between two steps of the main thread, and where the
    signal meets that thread on its way into a wait without end, it would run only after the wait.
    """
    heard, tell = socket.socketpair()
    tell.settimeout(0)
    before: dict[int, Any] = {}
    previous = signal.set_wakeup_fd(tell.fileno(), warn_on_full_buffer=False)
    listener = threading.Thread(target=_listen, args=(heard, inbox), name="signals", daemon=True)
    listener.start()
    for signum in ENDING:
        if signal.getsignal(signum) != signal.SIG_IGN:
            before[signum] = signal.signal(signum, _noted)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(previous)
        tell.close()
        listener.join()
        heard.close()


def _noted(_number: int, _frame: object) -> None:
    """Nothing to do: with a handler of Python's, the number is written to the wake-up socket."""


def _listen(heard: socket.socket, inbox: Inbox[Event]) -> None:
    asked = 0
    while numbers := heard.recv(64):
        for number in numbers:
            if number not in ENDING:
                continue
            asked += 1
            if asked > ENOUGH:
                os._exit(128 + number)
            inbox.put(Interrupted(number))
