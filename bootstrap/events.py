"""Marks for whoever draws what happened when: one JSON line each, only where MPIBOOT_EVENTS asks for them."""

from __future__ import annotations

import os
import time
from contextlib import suppress


class Events:
    """Writes to a file, or to a descriptor given as `fd:N`. A mark that cannot be written is nobody's problem."""

    def __init__(self, target: str, who: str) -> None:
        self._who, self._descriptor = who, -1
        with suppress(OSError, ValueError):
            if target.startswith("fd:"):
                self._descriptor = os.dup(int(target[3:]))
                os.set_inheritable(self._descriptor, False)  # noqa: FBT003 (its only way)
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
