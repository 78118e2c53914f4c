"""The rights of the operator, and the roles that give users rights on MPIJobs."""

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
        # An admission plugin demands this right for owner references that block deletion.
        rule("kubeflow.org", "mpijobs/finalizers", "update"),
        rule("", "pods", "get list watch create patch delete"),
        rule("", "services configmaps", "get list watch create patch"),
        # No list and no watch: the operator reads the Secrets that it makes, not all Secrets of a cluster.
        rule("", "secrets", "get create"),
        # Whether DNS knows a worker's name, before a launcher uses it.
        rule("discovery.k8s.io", "endpointslices", "list"),
        rule("", "events", "create patch"),
        # Delete: an edit of a suspended MPIJob may need a new launcher.
        rule("batch", "jobs", "get list watch create update patch delete"),
        # The groups of gang schedulers.
        rule("scheduling.volcano.sh", "podgroups", "get list watch create patch delete"),
        rule("scheduling.x-k8s.io", "podgroups", "get list watch create patch delete"),
        # A suspended Job's pod template can be changed only after its start time is cleared.
        rule("batch", "jobs/status", "patch"),
        # To notice another MPI operator in this cluster.
        rule("coordination.k8s.io", "leases", "get", "mpi-operator"),
    ]


def namespaced_rules() -> list[Rule]:
    """In the operator's own namespace: its Lease."""
    return [
        rule("coordination.k8s.io", "leases", "create"),
        rule("coordination.k8s.io", "leases", "get update", "mpiboot-operator"),
    ]


def users_roles() -> Iterator[dict[str, Any]]:
    """Users who may view or edit a namespace may do so with its MPIJobs: the cluster's own roles include these two."""
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
