"""Images of other makers, built once, and what the checker says about them."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.images.build.base import native
from tests.foreign.build import FOREIGN, build

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    import docker

# Which foreign image is made from which.
BUILT_ON = {"spoiled": "guide", "hanging": "guide", "misconfigured": "guide", "repaired": "guide"}


class Checked:
    """What `mpiboot images check IMAGE --json` said."""

    def __init__(self, process: subprocess.CompletedProcess[str]) -> None:
        assert process.returncode in {0, 1}, process.stderr
        self.code = process.returncode
        self.report: dict[str, Any] = json.loads(process.stdout)

    def points(self, status: str) -> set[str]:
        return {point["id"] for point in self.report["points"] if point["status"] == status}

    def observed(self, point_id: str) -> str:
        return next(str(point["saw"]) for point in self.report["points"] if point["id"] == point_id)

    def profile(self, name: str) -> dict[str, Any]:
        return next(profile for profile in self.report["profiles"] if profile["name"] == name)

    @property
    def works(self) -> set[str]:
        return {profile["name"] for profile in self.report["profiles"] if profile["works"]}

    def steps(self, profile: str) -> dict[str, str]:
        return {step["id"]: step["status"] for step in self.profile(profile)["steps"]}


@pytest.fixture(scope="session")
def foreign(docker_engine: docker.DockerClient) -> Callable[[str], str]:
    """The tag of an image of another maker, built if it is not there: `foreign("peers")`."""

    @functools.cache
    def get(name: str) -> str:
        base = get(BUILT_ON[name]) if name in BUILT_ON else None
        return build(docker_engine, FOREIGN / name, base=base)

    return get


@pytest.fixture(scope="session")
def bare(docker_engine: docker.DockerClient, foreign: Callable[[str], str]) -> str:
    """The tag of a Debian with nothing installed."""
    foreign("guide")  # so that the base is there
    return native(docker_engine, lambda _: None)


@pytest.fixture(scope="session")
def check(mpiboot: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[[str], Checked]:
    """What the checker says about an image. It is asked once for each, with the strictest profile required."""

    @functools.cache
    def get(tag: str) -> Checked:
        # Time enough for a machine that is busy with other tests.
        limit = ("--limit", "200")
        return Checked(mpiboot("images", "check", tag, "--json", "--require", "hardened", *limit, timeout=280))

    return get
