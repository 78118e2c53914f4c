"""The way from `mpiboot scale` to a running `mpiboot run`: a file in the container through which volumes are filled.

That container never starts. It is on the engine's machine, which may be another one than that of either command.
"""

from __future__ import annotations

import io
import secrets
import tarfile
from typing import TYPE_CHECKING

from docker.errors import NotFound

from mpiboot.engines.docker import volumes
from mpiboot.engines.docker.faults import of_engine
from mpiboot.engines.inbox import ScaleRequest

if TYPE_CHECKING:
    import threading

    from docker import APIClient

    from mpiboot.engines.inbox import Event, Inbox

PATH = "mpiboot-wanted-workers"
LOOK_EVERY = 0.5  # seconds


def write(api: APIClient, filler: str, workers: int) -> None:
    """Write the requested number. The random suffix makes two requests for the same number differ."""
    text = f"{workers} {secrets.token_hex(4)}"
    api.put_archive(filler, "/", volumes.one_file(PATH, text.encode()))


def read(api: APIClient, filler: str) -> str:
    """The latest request; empty if there is none."""
    try:
        chunks, _ = api.get_archive(filler, f"/{PATH}")
    except NotFound:
        return ""
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as tar:
        file = tar.extractfile(PATH)
        return file.read().decode() if file else ""


def follow(api: APIClient, filler: str, inbox: Inbox[Event], end: threading.Event) -> None:
    """Put each new request into the inbox, until `end` is set."""
    latest = ""
    while not end.wait(LOOK_EVERY):
        with of_engine("the job was running"):
            found = read(api, filler)
        if found and found != latest:
            latest = found
            inbox.put(ScaleRequest(int(found.split()[0])))
