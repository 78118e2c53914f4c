"""The objects of an installation: namespace, account, rights, the operator and its Service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpiboot import __version__
from mpiboot.controller.install.rights import namespaced_rules, rules, users_roles

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "mpiboot-operator"
NAMESPACE = "mpi-operator"
CHECKIN_SERVICE = "mpiboot-checkin"
# No registry has this name: the manifests in deploy/ run where the image was loaded into the nodes. Kubernetes must not
# look for it elsewhere, because what it would find under this name is another author's, and gets rights on Secrets.
IMAGE = f"mpiboot/operator:{__version__}"
LABELS = {"app.kubernetes.io/name": NAME}
MONITORING, CHECKIN = 8080, 8081

Object = dict[str, Any]


def install() -> Iterator[Object]:
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": {
        # The operator needs no privilege on a node, so no pod of this namespace does.
        "pod-security.kubernetes.io/enforce": "restricted"}}}  # fmt: skip
    yield named("v1", "ServiceAccount")
    rbac = "rbac.authorization.k8s.io/v1"
    yield {**named(rbac, "ClusterRole", NAMESPACE_LESS), "rules": rules()}
    yield {**named(rbac, "ClusterRoleBinding", NAMESPACE_LESS), **binding("ClusterRole")}
    yield {**named(rbac, "Role"), "rules": namespaced_rules()}
    yield {**named(rbac, "RoleBinding"), **binding("Role")}
    yield from users_roles()
    yield service()
    yield deployment()


NAMESPACE_LESS = ""


def named(version: str, kind: str, namespace: str = NAMESPACE, name: str = NAME) -> Object:
    where = {"namespace": namespace} if namespace else {}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **where, "labels": dict(LABELS)}}


def binding(role: str) -> Object:
    return {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
    }


def service() -> Object:
    """Headless: workers report to every replica, so they need the address of each one, also of one that starts."""
    return {
        **named("v1", "Service", name=CHECKIN_SERVICE),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": dict(LABELS),
            "ports": [{"name": "checkin", "port": CHECKIN}],
        },
    }


def deployment() -> Object:
    return {
        **named("apps/v1", "Deployment"),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": dict(LABELS)},
            "template": {"metadata": {"labels": dict(LABELS)}, "spec": pod()},
        },
    }


def pod() -> Object:
    return {
        "serviceAccountName": NAME,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "runAsGroup": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container()],
    }


def container() -> Object:
    probe = {"port": "monitoring"}
    return {
        "name": "operator",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "args": ["mpiboot", "operator"],
        "env": [
            field("POD_NAME", "metadata.name"),
            field("POD_IP", "status.podIP"),
            {"name": "MPIBOOT_OPERATOR_CHECKIN_SERVICE", "value": CHECKIN_SERVICE},
        ],
        "ports": [
            {"name": "monitoring", "containerPort": MONITORING},
            {"name": "checkin", "containerPort": CHECKIN},
        ],
        "livenessProbe": {"httpGet": {"path": "/healthz", **probe}, "periodSeconds": 10, "failureThreshold": 6},
        "readinessProbe": {"httpGet": {"path": "/readyz", **probe}, "periodSeconds": 5},
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def field(name: str, path: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
