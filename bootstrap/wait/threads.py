"""A few threads for calls that block, beside a selectors loop. The launcher does not wait for them at its end."""

from __future__ import annotations

import os
import select
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar

from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_STACK = 512 * 1024


class Threads(Generic[T]):
    """Calls functions in threads, started on demand. `fileno()` is readable when `results()` has results."""

    def __init__(self, name: str, threads: int) -> None:
        self._name, self._most = name, threads
        self._calls: SimpleQueue[Callable[[], T]] = SimpleQueue()
        self._results: SimpleQueue[T] = SimpleQueue()
        self._readable, self._writable = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._running = self._open = 0

    def fileno(self) -> int:
        return self._readable

    def submit(self, call: Callable[[], T]) -> None:
        """Call the function soon. It must not raise: only its result comes back."""
        self._calls.put(call)
        self._open += 1
        if self._running < min(self._most, self._open):
            self._running += 1
            before = threading.stack_size(_STACK)
            # Daemons: a DNS query may hang for half a minute, and the launcher must not wait for it.
            thread = threading.Thread(target=self._work, name=f"{self._name} {self._running}", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                self._running -= 1
                if not self._running:
                    raise UserError(f"{error} for {self._name}: raise the container's limit of processes") from error
            finally:
                threading.stack_size(before)

    def wait(self, seconds: float) -> None:
        """Wait for results, at most this long."""
        poll = select.poll()
        poll.register(self._readable, select.POLLIN)
        poll.poll(max(0.0, seconds) * 1000)

    def results(self) -> list[T]:
        """The results since the last call. Never blocks."""
        try:
            os.read(self._readable, 4096)
        except BlockingIOError:
            return []
        results = []
        while not self._results.empty():
            results.append(self._results.get())
            self._open -= 1
        return results

    def _work(self) -> None:
        while True:
            self._results.put(self._calls.get()())
            try:
                os.write(self._writable, b"x")
            except BlockingIOError:  # the pipe is full: the loop is awake already
                continue
