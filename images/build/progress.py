"""Shows the progress of several builds: on a terminal one changing line for each, elsewhere one line for each step."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, TextIO

from mpiboot.job.printable import printable

if TYPE_CHECKING:
    from mpiboot.images.build.build_output import Step


class Progress:
    """Several threads may call it. It writes to `out`, by default stderr: stdout is for results."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stderr
        self._terminal = self._out.isatty()
        self._lock = threading.Lock()
        self._begun: dict[str, float] = {}
        self._now: dict[str, str] = {}
        self._drawn = 0

    def log(self, text: str) -> None:
        """Print text that stays. It may hold the log of a build, which may contain control characters."""
        with self._lock:
            self._wipe()
            print(printable(text), file=self._out, flush=True)
            self._draw()

    def begin(self, name: str) -> None:
        with self._lock:
            self._begun[name] = time.monotonic()
            self._now[name] = "starting"
            self._redraw()

    def step(self, name: str, step: Step) -> None:
        """Show that a step of the build `name` began or ended."""
        if not step.counts:
            return
        if step.state == "done" and not self._terminal:
            self.log(f"{name}: {step.name} {step.seconds:.1f} s")
        if step.state == "running":
            with self._lock:
                self._now[name] = step.name
                self._redraw()

    def end(self, name: str, text: str) -> None:
        """Show that the build `name` is over, with or without success."""
        with self._lock:
            elapsed = time.monotonic() - self._begun.pop(name)
            del self._now[name]
        self.log(f"{name}: {text} ({elapsed:.1f} s)")

    def _redraw(self) -> None:
        self._wipe()
        self._draw()

    def _wipe(self) -> None:
        if self._drawn:
            self._out.write(f"\x1b[{self._drawn}A\x1b[J")
            self._drawn = 0

    def _draw(self) -> None:
        if not self._terminal:
            return
        for name, now in self._now.items():
            self._out.write(f"  {name:14} {now[:50]:50} {time.monotonic() - self._begun[name]:5.0f} s\n")
        self._drawn = len(self._now)
        self._out.flush()
