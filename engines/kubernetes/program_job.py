"""What `mpiboot run` adds to a job for a cluster: a place for the caller's directory, an open stdin, a pull policy."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from mpiboot.job import job_annotations, template

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VOLUME = "workdir"


def of_program(manifest: Mapping[str, Any], directory: str, fetch: Sequence[str] = ()) -> dict[str, Any]:
    """The manifest of a program's job. `directory` is the path of the caller's directory in its pods, or empty.

    `fetch`: patterns of the files in it that the caller wants back.

    An image that is on a node is not pulled again: a name without a tag would be, always.
    """
    made = copy.deepcopy(dict(manifest))
    for replica in made["spec"]["mpiReplicaSpecs"].values():
        spec = replica["template"]["spec"]
        for container in spec["containers"]:
            container.setdefault("imagePullPolicy", "IfNotPresent")
            if directory:
                container["workingDir"] = directory
                container["volumeMounts"] = [{"name": VOLUME, "mountPath": directory}]
        if directory:
            spec["volumes"] = [{"name": VOLUME, "emptyDir": {}}]
    if directory:
        launcher = _launcher(made)
        ours = {"MPIBOOT_RECEIVE": directory, **({"MPIBOOT_GIVE": "\n".join(fetch)} if fetch else {})}
        launcher["env"] = [*launcher.get("env", ()), *({"name": name, "value": ours[name]} for name in ours)]
        # `mpiboot launch` takes the directory. An image of another name may hold it as well; one without it says so.
        annotations = {job_annotations.LAUNCH: "in-place", **(made["metadata"].get("annotations") or {})}
        made["metadata"]["annotations"] = annotations
    return made


def with_stdin(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest, with a launcher whose stdin is open until the first connection to it ends."""
    made = copy.deepcopy(dict(manifest))
    _launcher(made).update(stdin=True, stdinOnce=True)
    return made


def has_launcher(manifest: Mapping[str, Any]) -> bool:
    """Whether the manifest has a launcher of its own: in v1alpha1 the operator makes it."""
    return bool(_replicas(manifest).get("Launcher"))


def _launcher(manifest: Mapping[str, Any]) -> dict[str, Any]:
    found = template.main_container(
        _replicas(manifest)["Launcher"]["template"], str(manifest["spec"].get("mainContainer") or "")
    )
    assert isinstance(found, dict)
    return found


def _replicas(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = manifest["spec"].get("mpiReplicaSpecs") or {}
    return found
