"""One process at a time: the others wait and say so."""

from __future__ import annotations

import contextlib
import fcntl
from typing import TYPE_CHECKING

from debian import say

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def only_one(path: Path, doing: str) -> Iterator[None]:
    """Hold the lock file while it lasts. The kernel frees it when its holder dies, however that happens."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            say(f"waiting for another process: {file.read().strip() or path}")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(doing)
        file.flush()
        yield
