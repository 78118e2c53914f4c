"""What a run creates on the engine, counted, so that the removal waits for it and finds all of it."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mpiboot.engines.docker.client import REQUEST_MAY_TAKE
from mpiboot.engines.engine import CancelledError

if TYPE_CHECKING:
    from collections.abc import Iterator


class Creations:
    """After `cancel` nothing new is created. After `wait`, too, nothing is being created."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self._changed = threading.Condition()
        self._under_way = 0

    def cancel(self) -> None:
        with self._changed:
            self.cancelled.set()

    def check(self) -> None:
        """Raise CancelledError after `cancel`."""
        if self.cancelled.is_set():
            raise CancelledError

    @contextmanager
    def one(self) -> Iterator[None]:
        """Around each request that creates something."""
        with self._changed:
            self.check()
            self._under_way += 1
        try:
            yield
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def wait(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._under_way == 0, timeout=REQUEST_MAY_TAKE)
