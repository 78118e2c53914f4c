"""The operators of a test process that watch all namespaces, and a way to let them rest."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

WATCHING_ALL: list[subprocess.Popen[bytes]] = []


@contextlib.contextmanager
def resting() -> Iterator[None]:
    """Pause them: a test's own operator, or its test of the API server, must meet no other."""
    paused = [process for process in WATCHING_ALL if process.poll() is None]
    for process in paused:
        process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in paused:
            process.send_signal(signal.SIGCONT)
