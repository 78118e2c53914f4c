"""The engine's client, quickly."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from mpiboot import containers

if TYPE_CHECKING:
    from docker import APIClient

# Starting many containers at once makes each request slow; a hung engine is recognized by its first answer.
REQUEST_MAY_TAKE = 180


def connect() -> APIClient:
    """A client of an engine that has answered."""
    _without_paramiko()
    api = containers.connect().api
    api.timeout = REQUEST_MAY_TAKE
    return api


def _without_paramiko() -> None:
    """docker imports paramiko for engines behind ssh://, and that takes as long as starting a container's process."""
    if os.environ.get("DOCKER_HOST", "").startswith("ssh:") or "docker" in sys.modules or "paramiko" in sys.modules:
        return
    sys.modules["paramiko"] = None  # type: ignore[assignment]
    try:
        import docker  # noqa: F401
    except ImportError:
        return  # the caller says how to install it
    finally:
        del sys.modules["paramiko"]
