"""A client of the Docker engine, imported without the parts that are slow and unused."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mpiboot.containers import client
from mpiboot.containers.endpoint import endpoint

if TYPE_CHECKING:
    from docker import APIClient

# Many containers that start at once make each request slow. `containers.connect` has already found a hung engine.
REQUEST_MAY_TAKE = 180  # seconds


def connect() -> APIClient:
    """A client of an engine that has answered."""
    _without_paramiko()
    api = client.connect().api
    api.timeout = REQUEST_MAY_TAKE
    return api


def _without_paramiko() -> None:
    """docker imports paramiko for engines behind ssh://, which takes as long as the start of a container's process."""
    if endpoint().by_ssh or "docker" in sys.modules or "paramiko" in sys.modules:
        return
    sys.modules["paramiko"] = None  # type: ignore[assignment]
    try:
        import docker  # noqa: F401
    except ImportError:
        return  # the caller reports how to install it
    finally:
        del sys.modules["paramiko"]
