"""The kinds of objects that the operator reads and writes, and where the API server keeps them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """One kind of object. `api_version` as in manifests: `v1`, `batch/v1`."""

    name: str
    api_version: str
    plural: str

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of one object, of a namespace's objects, or (no namespace) of all of them."""
        parts = ["api" if "/" not in self.api_version else "apis", self.api_version]
        if namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/" + "/".join(parts)


MPI_JOB = Kind("MPIJob", "kubeflow.org/v2beta1", "mpijobs")
JOB = Kind("Job", "batch/v1", "jobs")
POD = Kind("Pod", "v1", "pods")
SERVICE = Kind("Service", "v1", "services")
CONFIG_MAP = Kind("ConfigMap", "v1", "configmaps")
SECRET = Kind("Secret", "v1", "secrets")
ENDPOINT_SLICE = Kind("EndpointSlice", "discovery.k8s.io/v1", "endpointslices")
EVENT = Kind("Event", "v1", "events")
# The groups of two gang schedulers, by API version: an operator uses one of them.
POD_GROUPS = {
    version: Kind("PodGroup", version, "podgroups")
    for version in ("scheduling.volcano.sh/v1beta1", "scheduling.x-k8s.io/v1alpha1")
}
LEASE = Kind("Lease", "coordination.k8s.io/v1", "leases")

# The forms of a patch.
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
