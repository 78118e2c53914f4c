"""What an installation decides about every job it plans, as opposed to what a job says itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mpiboot.job.units import DEFAULT_PER_NODE

# `mpiboot/openmpi`, `registry.example:5000/team/mpiboot/mpich:1.2`, `mpiboot/intel@sha256:...`
OUR_IMAGES = r"(^|/)mpiboot/[a-z0-9._-]+(:[\w.-]+)?(@sha256:[0-9a-f]+)?$"


@dataclass(frozen=True)
class Settings:
    """Settings of a plan.

    An image is one of ours, so that its entrypoint is `mpiboot`, if it matches `own_image_pattern` (searched, so
    anchors are the pattern's own) or is listed in `own_images`, for callers that looked into the image itself.
    """

    own_image_pattern: str = OUR_IMAGES
    own_images: frozenset[str] = frozenset()
    cluster_domain: str = ""  # "": names end with `.svc`, which every cluster's search list completes
    checkin_urls: tuple[str, ...] = ()
    units_per_node: int = DEFAULT_PER_NODE  # GPUs of a node, for jobs of v1alpha1 that do not say
    delivery_image: str = ""  # brings sshd and ssh to images without; "": nobody does
    gang_scheduler: str = ""  # scheduler name of a gang scheduler, "" without one
    mount_keys: bool = True  # in all workers; else those that need no volume get their keys as variables

    def is_own(self, image: str) -> bool:
        """Whether an image carries mpiboot and its entrypoint."""
        return image in self.own_images or re.search(self.own_image_pattern, image) is not None
