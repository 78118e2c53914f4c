"""The Helm chart: the same installation, with expressions where values.yaml decides. `make manifests` writes it.

Scalars are Helm expressions as they stand: YAML quotes them, Helm fills them in. What is more than a scalar is written
as `@@name`, and replaced in the text by a block of its own.
"""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

from mpiboot import __version__
from mpiboot.controller import install, settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Object = dict[str, Any]

NAME = '{{ include "mpiboot.fullname" . }}'
CHECKIN = NAME + "-checkin"
NAMESPACE = "{{ .Values.namespace.name }}"
ACCOUNT = '{{ include "mpiboot.serviceAccountName" . }}'
IMAGE = "{{ .Values.image.repository }}:{{ .Values.image.tag }}"
LABELS = {"app.kubernetes.io/name": '{{ include "mpiboot.name" . }}',
          "app.kubernetes.io/instance": "{{ .Release.Name }}"}  # fmt: skip

# Values that are given as they are to a field of the same or another name; left out where they are empty.
OF_POD = ("imagePullSecrets", "nodeSelector", "tolerations", "affinity")
BLOCK = re.compile(r"^( *)([\w]+): '@@(\w+)'$", re.MULTILINE)
NUMBER = re.compile(r"'@@=(.*)'$", re.MULTILINE)
SETTINGS = re.compile(r"^( *)- '@@settings'$", re.MULTILINE)


def description() -> Object:
    """Chart.yaml."""
    return {
        "apiVersion": "v2",
        "name": "mpiboot-operator",
        "description": "Runs MPIJobs (kubeflow.org) on Kubernetes",
        "type": "application",
        "version": __version__,
        "appVersion": __version__,
        "kubeVersion": ">=1.29.0-0",
    }


def templates() -> Mapping[str, list[Object]]:
    """The objects of each file below templates/. Namespace and account hang on values and are written by hand."""
    found = [valued(each) for each in install.install() if each["kind"] not in ("Namespace", "ServiceAccount")]
    rights = [each for each in found if "rbac" in each["apiVersion"]]
    return {
        "rights.yaml": rights,
        "operator.yaml": [each for each in found if each not in rights],
    }


def valued(given: Object) -> Object:
    """An object of the installation with expressions for what values.yaml decides."""
    changed = copy.deepcopy(given)
    metadata = changed["metadata"]
    metadata["name"] = name(metadata["name"])
    if "namespace" in metadata:
        metadata["namespace"] = NAMESPACE
    if metadata.get("labels") == install.LABELS:
        metadata["labels"] = dict(LABELS)
    if "subjects" in changed:
        changed["subjects"] = [{**each, "name": ACCOUNT, "namespace": NAMESPACE} for each in changed["subjects"]]
        changed["roleRef"]["name"] = NAME
    if changed["kind"] == "Service":
        changed["spec"]["selector"] = dict(LABELS)
    if changed["kind"] == "Deployment":
        changed["spec"] = deployment(changed["spec"])
    return changed


def name(given: str) -> str:
    """An object's name in a release. Also what has no namespace gets one of its own, so that releases never meet."""
    known = {install.NAME: NAME, install.CHECKIN_SERVICE: CHECKIN}
    return known[given] if given in known else f"{NAME}-{given.removeprefix('mpiboot-')}"


def deployment(spec: Object) -> Object:
    pod = spec["template"]["spec"]
    container, = pod["containers"]
    env = [{**each, "value": CHECKIN} if each.get("value") == install.CHECKIN_SERVICE else each
           for each in container["env"]]  # fmt: skip
    pull = {"imagePullPolicy": "{{ .Values.image.pullPolicy }}"}
    container = {**container, "image": IMAGE, **pull, "env": [*env, "@@settings"],
                 "resources": "@@resources", "securityContext": "@@securityContext"}  # fmt: skip
    blocks = {name: f"@@{name}" for name in OF_POD} | {"securityContext": "@@podSecurityContext"}
    return {
        "replicas": "@@={{ .Values.replicaCount }}",
        "selector": {"matchLabels": dict(LABELS)},
        "template": {
            "metadata": {"labels": dict(LABELS), "annotations": "@@podAnnotations"},
            "spec": {**pod, "serviceAccountName": ACCOUNT, "containers": [container], **blocks},
        },
    }


def text(objects: list[Object]) -> str:
    """A template: blocks in place of their marks."""
    import yaml

    plain = yaml.safe_dump_all(objects, sort_keys=False, width=120)
    plain = BLOCK.sub(lambda found: "\n".join(block(len(found[1]), found[2], found[3])), plain)
    plain = SETTINGS.sub(lambda found: "\n".join(variables(found[1])), plain)
    return NUMBER.sub(r"\1", plain)


def block(indent: int, name: str, value: str) -> Iterator[str]:
    blank = " " * indent
    yield f"{blank}{{{{- with .Values.{value} }}}}"
    yield f"{blank}{name}: {{{{- toYaml . | nindent {indent + 2} }}}}"
    yield f"{blank}{{{{- end }}}}"


def variables(blank: str) -> Iterator[str]:
    """Every setting of the operator, by the name of its flag."""
    yield f"{blank}{{{{- range $name, $value := .Values.settings }}}}"
    yield f'{blank}- name: {settings.PREFIX}{{{{ $name | replace "-" "_" | upper }}}}'
    yield f"{blank}  value: {{{{ $value | quote }}}}"
    yield f"{blank}{{{{- end }}}}"
