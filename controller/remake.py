"""A launcher's Job that rests while its MPIJob is edited: what cannot be changed in it asks for another one. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpiboot.controller.view import digest
from mpiboot.controller.view_job import MADE_FROM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.controller.view_job import JobView

# Of a pod template only these, its labels and its annotations may change, and only while its Job rests.
FOLLOWED = ("nodeSelector", "tolerations", "schedulingGates", "affinity")


def marked(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The Job with a note of what it is made from. What the API server makes of it holds its defaults as well."""
    metadata = manifest["metadata"]
    annotations = {**metadata.get("annotations", {}), MADE_FROM: made_from(manifest)}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def outdated(launcher: JobView, manifest: Mapping[str, Any]) -> bool:
    """Whether the Job cannot become what is wanted now. One without a note is taken as it is."""
    return launcher.made_from not in ("", made_from(manifest))


def made_from(manifest: Mapping[str, Any]) -> str:
    spec = manifest["spec"]
    pod = {name: value for name, value in spec["template"]["spec"].items() if name not in FOLLOWED}
    limits = {name: value for name, value in spec.items() if name not in {"suspend", "template"}}
    return digest([limits, pod])
