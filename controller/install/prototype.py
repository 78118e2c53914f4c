"""The prototype mpi-operator: an installation in five objects, made from those of `deploy/`."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from mpiboot.controller.install.crd import crd
from mpiboot.controller.install.install import IMAGE, NAME, install
from mpiboot.controller.install.rights import namespaced_rules
from mpiboot.controller.settings import OPTIONS
from mpiboot.job.gpu_units import DEFAULT_PER_NODE
from mpiboot.job.prototypes.prototype import Manifests, Parameter, Prototype

if TYPE_CHECKING:
    from mpiboot.job.prototypes.parameter_values import ParameterValues

KINDS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Deployment")
LABEL = "app.kubernetes.io/name"


def operator(given: ParameterValues) -> Manifests:
    """CRD, ServiceAccount, ClusterRole, ClusterRoleBinding and Deployment, the last four named by the component."""
    image = given.text("image") or IMAGE
    namespace = given.namespace or "default"
    wanted = [each for each in install() if each["kind"] in KINDS and each["metadata"]["name"] == NAME]
    objects = {each["kind"]: renamed(each, given.name, namespace) for each in wanted}
    # The Lease is in the operator's namespace. With one ClusterRole its right cannot be narrower.
    objects["ClusterRole"]["rules"] += namespaced_rules()
    flags, notes = settings(given)
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    pod["containers"] = [container(pod["containers"][0], image, flags)]
    return Manifests((crd(), *(objects[each] for each in KINDS)), notes)


def renamed(found: dict[str, Any], name: str, namespace: str) -> dict[str, Any]:
    """The object under another name, and all references to it."""
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


def settings(given: ParameterValues) -> tuple[list[str], tuple[str, ...]]:
    """The operator's flags, and a note on each parameter for which this operator has no setting."""
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
    """The operator's container. Workers report to the pod's address: this prototype has no Service."""
    env = [each for each in found["env"] if each["name"] != "MPIBOOT_OPERATOR_CHECKIN_SERVICE"]
    made = {**found, "image": image, "args": [*found["args"], *flags], "env": env}
    if image != IMAGE:
        del made["imagePullPolicy"]
    return made


OPERATOR = Prototype(
    "mpi-operator",
    "Make an installation of the operator: CRD, account, rights, Deployment.",
    (
        Parameter("image", IMAGE, "Image of the operator."),
        Parameter("kubectlDeliveryImage", "null", "Image that adds SSH to images without it."),
        Parameter("gpusPerNode", str(DEFAULT_PER_NODE), "GPUs of a full worker, for v1alpha1 jobs without a number."),
    ),
    operator,
)
