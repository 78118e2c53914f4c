"""A profile as the engine's options. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mpiboot.images.contract import Profile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.images.check.image import Image


@dataclass(frozen=True)
class RunAs:
    """The container's user, and the options that restrict the container."""

    user: str | None  # None: the image's own
    options: Mapping[str, Any] = field(default_factory=dict)


def run_as(profile: Profile, any_uid: int) -> RunAs:
    """The options that make an engine run a container as a cluster does in that profile."""
    if profile is Profile.OWN:
        return RunAs(None)
    if profile is Profile.ANY_UID:
        return RunAs(f"{any_uid}:0")
    restricted = {
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "read_only": True,
        "tmpfs": {"/tmp": "mode=1777"},  # noqa: S108 (the container's)
    }
    return RunAs(f"{any_uid}:0", restricted)


def shown_user(profile: Profile, image: Image, any_uid: int) -> str:
    """The user of that profile, for people."""
    return (image.user or "root") if profile is Profile.OWN else f"{any_uid}:0"
