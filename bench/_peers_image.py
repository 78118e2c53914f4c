"""Images like those of mpi-operator's users, built by the Dockerfiles of the tests."""

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
    return built(RECIPE, TAG)


def guides_image() -> str:
    """An image by the computing centre's guide."""
    return built(RECIPE.parent / "guide", "mpiboot-test/guide:latest")


def example_image(runtime: str) -> str:
    """An image of the kind that mpi-operator's examples run: this runtime behind an entrypoint, without mpiboot."""
    return built(RECIPE.parent / "example", f"mpiboot-test/example-{runtime}:latest", f"mpiboot/{runtime}:latest")


def built(recipe: Path, tag: str, base: str = "") -> str:
    """Build an image and return its tag. The engine's cache makes a second build quick."""
    engine = connect()
    try:
        base = base or native(engine, lambda _: None)
    except BaseError as error:
        raise Unavailable(f"a Debian base ({error}); get it with: make setup") from None
    finally:
        engine.close()
    done = subprocess.run(
        [docker_cli(), "build", "--quiet", "--tag", tag, "--build-arg", f"BASE={base}", str(recipe)],
        text=True, capture_output=True, env={**os.environ, "DOCKER_BUILDKIT": "1"})
    if done.returncode:
        raise RuntimeError(f"{recipe} does not build: {done.stderr[-2000:]}")
    return tag
