"""The events of a running job: values in one queue, which only the main thread reads.

All that could block (an engine's answers, a program's output) happens in other threads. So a signal takes effect at
once and never cuts a request in two: such a request leaves things behind that no later step knows of.
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
# The first signal ends the job, the second kills it, the third still waits for an engine that hangs. The next one
# leaves everything as it is.
PATIENCE = 3


@dataclass(frozen=True)
class Ended:
    """A process of the job has ended. `reason` explains the exit code, where the engine knows more."""

    process: str
    code: int
    reason: str = ""


@dataclass(frozen=True)
class Interrupted:
    """A signal asks for the end of the job."""

    signum: int


@dataclass(frozen=True)
class Failed:
    """A thread raised an error, which ends the job."""

    error: BaseException


@dataclass(frozen=True)
class ScaleRequest:
    """`mpiboot scale` asks for this number of workers."""

    workers: int


Event = Ended | Interrupted | Failed | ScaleRequest

Inbox = queue.SimpleQueue


def process_name(role: str, index: int) -> str:
    """The name of a process in the output of a job: `launcher`, `worker-0`."""
    return role if role == LAUNCHER else f"{role}-{index}"


def in_background(inbox: Inbox[Event], work: Callable[[], None], name: str) -> threading.Thread:
    """A started thread that does `work`; an error in it arrives in the inbox."""

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 (the main thread must learn of every error)
            inbox.put(Failed(error))

    thread = threading.Thread(target=guarded, name=name, daemon=True)
    thread.start()
    return thread


@contextmanager
def signals_to(inbox: Inbox[Event]) -> Iterator[None]:
    """While this lasts, signals that ask for the end arrive in the inbox. One ignored before (nohup) stays ignored.

    A thread of its own receives them: Python runs a signal handler between two steps of the main thread, and if the
    signal arrives just before that thread waits without a limit, the handler would run only after the wait.
    """
    reader, writer = socket.socketpair()
    writer.settimeout(0)
    before: dict[int, Any] = {}
    previous = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    listener = threading.Thread(target=_listen, args=(reader, inbox), name="signals", daemon=True)
    listener.start()
    for signum in ENDING:
        if signal.getsignal(signum) != signal.SIG_IGN:
            before[signum] = signal.signal(signum, _do_nothing)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(previous)
        writer.close()
        listener.join()
        reader.close()


def _do_nothing(_number: int, _frame: object) -> None:
    """A handler of Python's must exist: then the number of the signal is written to the wake-up socket."""


def _listen(reader: socket.socket, inbox: Inbox[Event]) -> None:
    received = 0
    while numbers := reader.recv(64):
        for number in numbers:
            if number not in ENDING:
                continue
            received += 1
            if received > PATIENCE:
                os._exit(128 + number)
            inbox.put(Interrupted(number))
