"""Python imports this first in a process that is traced: it writes down the project's files in the order of use.

Environment variables say what to trace:
MPIBOOT_WALK_FILE   the list to write
MPIBOOT_WALK_ROOT   the work tree
MPIBOOT_WALK_UNTIL  pod: from SIGUSR1 to the request that creates a pod. Another word: from the start of the process to
                    the start of a program whose last argument is that word.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import CodeType, FrameType

OPTIMIZED = 1  # the flag of a function's code; the code of a module or a class lacks it


class Walk:
    """The files whose functions were called, in the order of the first call."""

    def __init__(self, target: Path, root: Path, until: str) -> None:
        self._target, self._root, self._until = target, root, until
        self._known: dict[CodeType, str] = {}
        self._files: list[str] = []
        self._open = until != "pod"
        if until == "pod":
            signal.signal(signal.SIGUSR1, lambda *_: setattr(self, "_open", True))
        else:
            sys.addaudithook(self._audit)
        threading.setprofile(self._called)
        sys.setprofile(self._called)

    def _called(self, frame: FrameType, event: str, _: Any) -> None:  # noqa: ANN401 (Python's signature)
        if event != "call" or not self._open:
            return
        file = self._file(frame.f_code)
        if not file:
            return
        if file not in self._files and not _importing(frame):
            self._files.append(file)
        if self._until == "pod" and file.endswith("/api.py") and _creates_a_pod(frame):
            self._end()

    def _file(self, code: CodeType) -> str:
        """The file's path in the work tree; empty for what is not of it."""
        if code not in self._known:
            path = Path(os.path.realpath(code.co_filename))
            ours = path.suffix == ".py" and path.is_relative_to(self._root) and ".venv" not in path.parts
            ours = ours and bool(code.co_flags & OPTIMIZED)
            self._known[code] = str(path.relative_to(self._root)) if ours else ""
        return self._known[code]

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._open and event == "os.posix_spawn" and os.fsdecode(arguments[1][-1]) == self._until:
            self._end()

    def _end(self) -> None:
        self._open = False
        sys.setprofile(None)
        fresh = self._target.with_suffix(".new")
        fresh.write_text("\n".join(self._files))
        fresh.replace(self._target)


def _creates_a_pod(frame: FrameType) -> bool:
    kind = frame.f_locals.get("kind")
    return frame.f_code.co_name == "create" and getattr(kind, "plural", "") == "pods"


def _importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported: what it calls then belongs to no walk."""
    while frame:
        if frame.f_code.co_name == "<module>" and "importlib" in str(frame.f_back and frame.f_back.f_code.co_filename):
            return True
        frame = frame.f_back
    return False


if target := os.environ.pop("MPIBOOT_WALK_FILE", ""):
    Walk(Path(target), Path(os.environ["MPIBOOT_WALK_ROOT"]), os.environ["MPIBOOT_WALK_UNTIL"])
