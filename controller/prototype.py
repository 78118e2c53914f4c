"""The prototype mpi-operator: an installation in five objects, made from those of `deploy/`."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from mpiboot.controller.crd import crd
from mpiboot.controller.install import IMAGE, NAME, install
from mpiboot.controller.rights import namespaced_rules
from mpiboot.controller.settings import OPTIONS
from mpiboot.job.prototypes.prototype import Manifests, Parameter, Prototype
from mpiboot.job.units import DEFAULT_PER_NODE

if TYPE_CHECKING:
    from mpiboot.job.prototypes.given import Given

KINDS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Deployment")
LABEL = "app.kubernetes.io/name"


def operator(given: Given) -> Manifests:
    """CRD, ServiceAccount, ClusterRole, ClusterRoleBinding and Deployment, the last four named by the component."""
    image = given.text("image") or IMAGE
    namespace = given.namespace or "default"
    wanted = [each for each in install() if each["kind"] in KINDS and each["metadata"]["name"] == NAME]
    objects = {each["kind"]: renamed(each, given.name, namespace) for each in wanted}
    # Its Lease is in its own namespace; with one role for all, the right to it cannot be narrower.
    objects["ClusterRole"]["rules"] += namespaced_rules()
    flags, notes = settings(given)
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    pod["containers"] = [container(pod["containers"][0], image, flags)]
    return Manifests((crd(), *(objects[each] for each in KINDS)), notes)


def renamed(found: dict[str, Any], name: str, namespace: str) -> dict[str, Any]:
    """The object under another name, and with it all that refers to it."""
    changed = copy.deepcopy(found)
    changed["metadata"]["name"] = name
    if "namespace" in changed["metadata"]:
        changed["metadata"]["namespace"] = namespace
    changed["metadata"]["labels"][LABEL] = name
    if "roleRef" in changed:
        changed["roleRef"]["name"] = name
        changed["subjects"] = [{**each, "name": name, "namespace": namespace} for each in changed["subjects"]]
    if "template" in changed.get("spec", {}):
        spec = changed["spec"]
        spec["selector"]["matchLabels"][LABEL] = spec["template"]["metadata"]["labels"][LABEL] = name
        spec["template"]["spec"]["serviceAccountName"] = name
    return changed


def settings(given: Given) -> tuple[list[str], tuple[str, ...]]:
    """The operator's flags, and a note on each parameter that this operator has no setting for."""
    per_node = given.count("gpusPerNode", least=1)
    asked = {
        "gpus_per_node": ("gpusPerNode", str(per_node) if per_node != DEFAULT_PER_NODE else None),
        "delivery_image": ("kubectlDeliveryImage", given.text("kubectlDeliveryImage")),
    }
    known = {option.name: option for option in OPTIONS}
    flags: list[str] = []
    notes: list[str] = []
    for name, (parameter, value) in asked.items():
        if value is None:
            continue
        if name in known:
            flags += [known[name].flag, value]
        else:
            notes.append(f"{parameter}={value} has no meaning for this operator.")
    return flags, tuple(notes)


def container(found: dict[str, Any], image: str, flags: list[str]) -> dict[str, Any]:
    """The operator's container. Workers report to its pod itself: there is no Service beside it."""
    env = [each for each in found["env"] if each["name"] != "MPIBOOT_OPERATOR_CHECKIN_SERVICE"]
    return {**found, "image": image, "args": [*found["args"], *flags], "env": env}


OPERATOR = Prototype(
    "mpi-operator",
    "Make an installation of the operator: CRD, account, rights, Deployment.",
    (
        Parameter("image", IMAGE, "Image of the operator."),
        Parameter("kubectlDeliveryImage", "null", "Image that brings what a user's image lacks (SSH; once, kubectl)."),
        Parameter("gpusPerNode", str(DEFAULT_PER_NODE), "GPUs of a full worker, for v1alpha1 jobs that do not say it."),
    ),
    operator,
)
