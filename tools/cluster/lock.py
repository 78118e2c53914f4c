"""A lock for one process at a time. The others wait and print what they wait for."""

from __future__ import annotations

import contextlib
import fcntl
from typing import TYPE_CHECKING

from debian import log

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def only_one(path: Path, doing: str) -> Iterator[None]:
    """Hold the lock file in a `with` block. The kernel frees it when the process dies, however that happens."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            log(f"waiting for another process: {file.read().strip() or path}")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(doing)
        file.flush()
        yield
