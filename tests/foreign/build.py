"""Builds the images that tests bring themselves, on the base that mpiboot's own images have."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mpiboot.containers.client import docker_cli
from mpiboot.images.build.base import BaseError, native
from tests.conftest import REPOSITORY, missing

if TYPE_CHECKING:
    from collections.abc import Mapping

    import docker

FOREIGN = Path(__file__).parent


def build(
    engine: docker.DockerClient,
    folder: Path,
    *,
    context: Path | None = None,
    base: str | None = None,
    tag: str | None = None,
    platform: str | None = None,
    arguments: Mapping[str, str] | None = None,
) -> str:
    """The tag of the image that `folder`/Dockerfile describes; the engine's layer cache makes a second time quick."""
    try:
        base = base or native(engine, lambda _: None)
    except BaseError as error:
        missing(f"a Debian base ({error})", "make setup")
    tag = f"mpiboot-test/{tag or folder.name}:latest"
    argv = [docker_cli(), "build", "--quiet", "--tag", tag, "--build-arg", f"BASE={base}"]
    argv += ["--platform", platform] if platform else []
    argv += [word for name, value in (arguments or {}).items() for word in ("--build-arg", f"{name}={value}")]
    argv += ["--file", str(folder / "Dockerfile"), str(context or folder)]
    done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, "DOCKER_BUILDKIT": "1"}, timeout=280)
    if done.returncode != 0:
        pytest.fail(f"{folder.relative_to(REPOSITORY)} does not build:\n{done.stderr[-4000:]}", pytrace=False)
    return tag
