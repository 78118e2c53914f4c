"""What the operator may do, and no more; and the roles by which people get rights on MPIJobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Rule = dict[str, Any]


def rule(group: str, resources: str, verbs: str, *names: str) -> Rule:
    limited = {"resourceNames": list(names)} if names else {}
    return {"apiGroups": [group], "resources": resources.split(), **limited, "verbs": verbs.split()}


def rules() -> list[Rule]:
    """In the namespaces of jobs."""
    return [
        rule("kubeflow.org", "mpijobs", "get list watch"),
        rule("kubeflow.org", "mpijobs/status", "update"),
        # Owner references that block deletion ask for this where that admission plugin is on.
        rule("kubeflow.org", "mpijobs/finalizers", "update"),
        rule("", "pods", "get list watch create patch delete"),
        rule("", "services configmaps", "get list watch create patch"),
        # No list and no watch: the operator sees the Secrets that it makes, and not all those of a cluster.
        rule("", "secrets", "get create"),
        # Whether a worker's name is known already, before a launcher is told of it.
        rule("discovery.k8s.io", "endpointslices", "list"),
        rule("", "events", "create patch"),
        # One that rests is deleted where its job was edited so that another is needed.
        rule("batch", "jobs", "get list watch create update patch delete"),
        # A suspended Job's pod template can be changed only after its start time is cleared.
        rule("batch", "jobs/status", "patch"),
        # Whether another MPI operator works in this cluster.
        rule("coordination.k8s.io", "leases", "get", "mpi-operator"),
    ]


def namespaced_rules() -> list[Rule]:
    """In the operator's own namespace: its Lease."""
    return [
        rule("coordination.k8s.io", "leases", "create"),
        rule("coordination.k8s.io", "leases", "get update", "mpiboot-operator"),
    ]


def users_roles() -> Iterator[dict[str, Any]]:
    """Whoever may edit or view a namespace may do so with its MPIJobs: the cluster's own roles take these in."""
    to_view, to_edit = "get list watch", "create update patch delete deletecollection"
    yield _role("mpiboot-mpijobs-view", ("view", "edit", "admin"), to_view)
    yield _role("mpiboot-mpijobs-edit", ("edit", "admin"), f"{to_view} {to_edit}")


def _role(name: str, roles: tuple[str, ...], verbs: str) -> dict[str, Any]:
    targets = {f"rbac.authorization.k8s.io/aggregate-to-{role}": "true" for role in roles}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": targets},
        "rules": [rule("kubeflow.org", "mpijobs", verbs), rule("kubeflow.org", "mpijobs/status", "get")],
    }
