"""Errors of the engine that does not start a container: does the image cause them, and what is the reason?"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docker.errors import APIError


def is_about_the_program(error: APIError) -> bool:
    """Whether the engine did not start a container because its program cannot run in the image."""
    return "OCI runtime" in str(error.explanation)


def is_about_the_engine(error: APIError) -> bool:
    """Whether the engine failed to make or start a container for a reason that does not concern the image."""
    return bool(error.is_server_error()) and not is_about_the_program(error)


def reason(error: APIError) -> str:
    """The engine's reason, without the names of the engine's parts that pass the error on."""
    text = str(error.explanation or error)
    return text.rpartition("container process: ")[2].removesuffix(": unknown").strip().splitlines()[0][:200]
