"""The end of time for one thread of a check: what it runs in is taken away, so that whatever hangs there ends."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docker.models.containers import Container

    from mpiboot.images.check.sandbox import Sandbox


class Cutoff:
    """Knows the containers in which a thread waits. After `fall`, by another thread, `why` says what to report."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.why: str | None = None
        self._sandbox = sandbox
        self._containers: list[Container] = []
        self._lock = threading.Lock()

    def watch(self, container: Container) -> None:
        """Have it removed when time is over: at once, if that is already so."""
        with self._lock:
            self._containers.append(container)
            if self.why:
                self._sandbox.remove([container])

    def fall(self, why: str) -> None:
        """Time is over: commands in these containers end with an error."""
        with self._lock:
            self.why = why
            self._sandbox.remove(self._containers)
