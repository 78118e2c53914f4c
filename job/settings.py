"""The settings of an installation, which hold for every job that it plans."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mpiboot.job import mpi
from mpiboot.job.gpu_units import DEFAULT_PER_NODE
from mpiboot.job.read.fields import MOST_WORKERS

# `mpiboot/openmpi`, `registry.example:5000/team/mpiboot/mpich:1.2`, `mpiboot/intel@sha256:...`, and what `images push`
# makes of them below a path: `ghcr.io/me/mpiboot-openmpi-cuda` (docs/decisions/0015-names-of-our-images.md).
OUR_KINDS = "|".join((*(runtime.image for runtime in mpi.RUNTIMES), "horovod", "deepspeed"))
OUR_IMAGES = rf"(^|/)mpiboot(/[a-z0-9._-]+|-({OUR_KINDS})(-[a-z0-9._-]+)?)(:[\w.-]+)?(@[\w:]+)?$"


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
    max_workers: int = MOST_WORKERS  # of one job
    delivery_image: str = ""  # adds sshd and ssh to images without them; "": no image does
    gang_scheduling: str = ""  # the scheduler that starts all pods of a job together, see gang.py; "": none
    mount_keys: bool = True  # in all workers; otherwise workers that need no volume get their keys as variables

    def is_own(self, image: str) -> bool:
        """Whether an image carries mpiboot and its entrypoint."""
        return image in self.own_images or re.search(self.own_image_pattern, image) is not None
