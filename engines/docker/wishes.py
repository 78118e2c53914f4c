"""How `mpiboot scale` tells a running `mpiboot run` what it wants: a file in the container that fills the volumes.

That container never starts, and is where the engine is, which may be another machine than that of either command.
"""

from __future__ import annotations

import io
import secrets
import tarfile
from typing import TYPE_CHECKING

from docker.errors import NotFound

from mpiboot.engines.docker import fill
from mpiboot.engines.docker.faults import of_engine
from mpiboot.engines.inbox import Resize

if TYPE_CHECKING:
    import threading

    from docker import APIClient

    from mpiboot.engines.inbox import Event, Inbox

PATH = "mpiboot-wanted-workers"
LOOK_EVERY = 0.5  # seconds


def write(api: APIClient, filler: str, workers: int) -> None:
    """Leave the wish. The word behind the number tells it from an earlier one for the same number."""
    api.put_archive(filler, "/", fill.one_file(PATH, f"{workers} {secrets.token_hex(4)}".encode()))


def read(api: APIClient, filler: str) -> str:
    """The latest wish; empty if there is none."""
    try:
        chunks, _ = api.get_archive(filler, f"/{PATH}")
    except NotFound:
        return ""
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as tar:
        file = tar.extractfile(PATH)
        return file.read().decode() if file else ""


def follow(api: APIClient, filler: str, inbox: Inbox[Event], end: threading.Event) -> None:
    """Pass on each new wish until the end."""
    latest = ""
    while not end.wait(LOOK_EVERY):
        with of_engine("the job was running"):
            found = read(api, filler)
        if found and found != latest:
            latest = found
            inbox.put(Resize(int(found.split()[0])))
