"""The termination message: the file that Kubernetes reads when a container has ended."""

from __future__ import annotations

import os
from contextlib import suppress

PATH = "/dev/termination-log"
_LONGEST = 4096  # bytes that a kubelet reads


def write(text: str, path: str = PATH) -> None:
    """Write the text, if the file exists and can be written. Outside of Kubernetes it does not exist."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            os.write(descriptor, text.encode("utf-8", "replace")[:_LONGEST])
        finally:
            os.close(descriptor)
