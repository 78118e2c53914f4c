"""The time limit of one thread of a check: it removes the thread's containers, so that a command that hangs ends."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docker.models.containers import Container

    from mpiboot.images.check.sandbox import Sandbox


class Cutoff:
    """Knows the containers in which a thread waits. Another thread calls `expire`; `why` is then the fault."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.why: str | None = None
        self._sandbox = sandbox
        self._containers: list[Container] = []
        self._lock = threading.Lock()

    def watch(self, container: Container) -> None:
        """Remove the container at the time limit, or at once if the limit has passed."""
        with self._lock:
            self._containers.append(container)
            if self.why:
                self._sandbox.remove([container])

    def expire(self, why: str) -> None:
        """Remove the containers, so that commands in them end with an error."""
        with self._lock:
            self.why = why
            self._sandbox.remove(self._containers)
