"""Marks events for a timeline: a JSON line for each, only if MPIBOOT_EVENTS is set."""

from __future__ import annotations

import os
import time
from contextlib import suppress


class Events:
    """Writes to a file, or to a descriptor given as `fd:N`. A mark that cannot be written is dropped."""

    def __init__(self, target: str, who: str) -> None:
        self._who, self._descriptor = who, -1
        with suppress(OSError, ValueError, OverflowError):
            if target.startswith("fd:"):
                self._descriptor = os.dup(int(target[3:]))
                os.set_inheritable(self._descriptor, False)  # noqa: FBT003 (positional only)
            elif target:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
                self._descriptor = os.open(target, flags, 0o644)

    def mark(self, event: str, **more: object) -> None:
        if self._descriptor < 0:
            return
        import json

        line = json.dumps({"t": time.time(), "event": event, "who": self._who, **more})
        with suppress(OSError):
            os.write(self._descriptor, f"{line}\n".encode())
