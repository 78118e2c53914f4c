"""Work that blocks, done in a few threads beside a selectors loop; at the end nobody waits for them."""

from __future__ import annotations

import os
import select
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_STACK = 512 * 1024


class Beside(Generic[T]):
    """Calls functions in threads, made as they are needed. `fileno()` is readable when `results()` has some."""

    def __init__(self, name: str, threads: int) -> None:
        self._name, self._most = name, threads
        self._calls: SimpleQueue[Callable[[], T]] = SimpleQueue()
        self._results: SimpleQueue[T] = SimpleQueue()
        self._readable, self._writable = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._running = self._open = 0

    def fileno(self) -> int:
        return self._readable

    def submit(self, call: Callable[[], T]) -> None:
        """Have it called soon. It must not raise: what it returns is all that comes back."""
        self._calls.put(call)
        self._open += 1
        if self._running < min(self._most, self._open):
            self._running += 1
            before = threading.stack_size(_STACK)
            # Daemons: a look-up may hang for half a minute, and the job must not wait for it.
            threading.Thread(target=self._work, name=f"{self._name} {self._running}", daemon=True).start()
            threading.stack_size(before)

    def wait(self, seconds: float) -> None:
        """Until there are results, at most so long."""
        poll = select.poll()
        poll.register(self._readable, select.POLLIN)
        poll.poll(max(0.0, seconds) * 1000)

    def results(self) -> list[T]:
        """What came in since the last call. Never blocks."""
        try:
            os.read(self._readable, 4096)
        except BlockingIOError:
            return []
        found = []
        while not self._results.empty():
            found.append(self._results.get())
            self._open -= 1
        return found

    def _work(self) -> None:
        while True:
            self._results.put(self._calls.get()())
            try:
                os.write(self._writable, b"x")
            except BlockingIOError:  # full: the loop has been woken already
                continue
