"""What the API server or a node refuses in a job's templates, found before it is sent there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mpiboot.job.problems import Problem, below
from mpiboot.job.template import spec_of
from mpiboot.job.values import kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mpiboot.job.arrangement import Arrangement, RoleArrangement
    from mpiboot.job.model import Job

QUANTITY = re.compile(r"\+?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,3})?")
# HOST[:PORT]/PATH[:TAG][@DIGEST]; a host, which has a dot or a colon, may have capital letters.
HOST = r"(?=[^/]*[.:])(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]+)?"
PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
TAG, DIGEST = r":[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", r"@[a-z0-9+.-]+:[0-9a-fA-F]+"
IMAGE = re.compile(rf"(?:{HOST}/)?{PART}(?:/{PART})*(?:{TAG})?(?:{DIGEST})?")
LONGEST_IMAGE = 500


def refused(arrangement: Arrangement) -> Iterator[Problem]:
    """Errors, each with the path of its field."""
    for name, role in (("Launcher", arrangement.launcher), ("Worker", arrangement.worker)):
        if role:
            yield from of_role(arrangement.job, name, role)


def of_role(job: Job, name: str, role: RoleArrangement) -> Iterator[Problem]:
    spec = f"{template_path(job, name)}.spec"
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec_of(role.template).get(field) or ()):
            path = f"{spec}.{field}[{index}]"
            yield from image(path, container.get("image"))
            yield from quantities(f"{path}.resources", container.get("resources"))
    first = (role.container.get("command") or [None])[0]
    if isinstance(first, str) and not first.strip():
        yield Problem(f"{spec}.containers[{role.position}].command", "its first word is empty: name a program")


def template_path(job: Job, name: str) -> str:
    """The path of a role's template. v1alpha1 has one template for both."""
    return "spec.template" if job.dialect == "v1alpha1" else f"spec.mpiReplicaSpecs.{name}.template"


def image(path: str, name: object) -> Iterator[Problem]:
    if not name:
        yield Problem(f"{path}.image", "must be given: Kubernetes refuses the pod")
    elif isinstance(name, str) and (len(name) > LONGEST_IMAGE or not IMAGE.fullmatch(name)):
        message = f"is not a name of an image: {kind(name)}; write it like registry.example/team/app:1.2"
        yield Problem(f"{path}.image", message)


def quantities(path: str, resources: object) -> Iterator[Problem]:
    for field in ("limits", "requests"):
        given = resources.get(field) if isinstance(resources, dict) else None
        for name, value in (given if isinstance(given, dict) else {}).items():
            if isinstance(value, bool) or not QUANTITY.fullmatch(str(value)):
                message = f"is not a quantity: {kind(value)}; write it like 500m, 2 or 4Gi"
                yield Problem(below(f"{path}.{field}", str(name)), message)
