"""An image like those of mpi-operator's users, built by the Dockerfile of the tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from bench.harness import Unavailable
from mpiboot.containers.client import connect, docker_cli
from mpiboot.images.build.base import BaseError, native

RECIPE = Path(__file__).resolve().parent.parent / "tests" / "foreign" / "peers"
TAG = "mpiboot-test/peers:latest"
SSHD = ("/usr/sbin/sshd", "-De", "-f", "/home/mpiuser/.sshd_config")  # a worker's command in their manifests


def peers_image() -> str:
    """Build the image and return its tag. The engine's cache makes a second build quick."""
    engine = connect()
    try:
        base = native(engine, lambda _: None)
    except BaseError as error:
        raise Unavailable(f"a Debian base ({error}); get it with: make setup") from None
    finally:
        engine.close()
    built = subprocess.run(
        [docker_cli(), "build", "--quiet", "--tag", TAG, "--build-arg", f"BASE={base}", str(RECIPE)],
        text=True, capture_output=True, env={**os.environ, "DOCKER_BUILDKIT": "1"})
    if built.returncode:
        raise RuntimeError(f"{RECIPE} does not build: {built.stderr[-2000:]}")
    return TAG
