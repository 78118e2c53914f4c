"""The reader of kubeflow.org/v1alpha1: one template for both roles, and arithmetic that says how many workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpiboot.job import gpu_units
from mpiboot.job.model import Job, Replica, RunPolicy
from mpiboot.job.read import podtemplate, v2beta1
from mpiboot.job.read.fields import MOST_SLOTS
from mpiboot.job.read.replica_specs import containers
from mpiboot.job.read.v1alpha2 import BACKOFF_LIMIT
from mpiboot.job.values import Json, kind, natural

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.job.read.fields import Fields
    from mpiboot.job.read.metadata import Metadata

GPU, CPU = "nvidia.com/gpu", "cpu"
MASTERS = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
ELSEWHERE = {
    "cleanPodPolicy": "spec.runPolicy.cleanPodPolicy, of later versions; workers go when the launcher has ended",
    "mpiReplicaSpecs": "spec.template and spec.replicas",
}


def read(metadata: Metadata, spec: Fields) -> Job:
    """The job that a spec describes. Its launcher was created when all workers were ready, and they went with it."""
    spec.known(
        "dialect", "gpus", "gpusPerNode", "processingUnits", "processingUnitsPerNode", "processingResourceType",
        "slotsPerWorker", "launcherOnMaster", "backoffLimit", "activeDeadlineSeconds", "replicas", "template",
        "sshAuthMountPath", elsewhere=ELSEWHERE,
    )  # fmt: skip
    fields = spec.mapping("template")
    podtemplate.check(fields)
    template = fields.value
    resource = resource_type(spec)
    workers, each = size(spec, template, resource, metadata.units_per_node)
    backoff = spec.integer("backoffLimit", minimum=0)
    return Job(
        **metadata.job_fields,
        slots_per_worker=spec.integer("slotsPerWorker", minimum=1, largest=MOST_SLOTS) or each or 1,
        ssh_auth_mount_path=v2beta1.mount_path(spec),
        launcher_creation_policy="WaitForWorkersReady",
        launcher=launcher(template, on_master=spec.boolean("launcherOnMaster", default=False)),
        worker=Replica(workers, workers_template(template, resource, each), "Always") if workers else None,
        run_policy=RunPolicy(
            clean_pod_policy="All",
            backoff_limit=BACKOFF_LIMIT if backoff is None else backoff,
            active_deadline_seconds=spec.integer(
                "activeDeadlineSeconds", minimum=0, largest=v2beta1.LARGEST_INT64
            ),
        ),
    )


def resource_type(spec: Fields) -> str:
    """What a processing unit is. The first operator read any unknown value as GPUs."""
    value = spec.text("processingResourceType", GPU)
    if value not in (GPU, CPU):
        spec.note("processingResourceType", f"must be {GPU} or {CPU}, is {kind(value)}: {GPU} is used", "warning")
        return GPU
    return value


def size(spec: Fields, template: Mapping[str, Any], resource: str, per_node: int) -> tuple[int, int]:
    """The number of workers, and the units that each gets."""
    ways = [name for name in ("gpus", "processingUnits", "replicas") if spec.get(name) is not None]
    if len(ways) > 1:
        spec.note(ways[1], f"only one of {' and '.join(ways)} may be given: each sets the size of the job")
    if not ways:
        spec.note(None, "one of gpus, processingUnits and replicas must be given: it sets the size of the job")
        return 1, 0
    number = spec.integer(ways[0], minimum=1) or 1
    if ways[0] == "replicas":
        return number, limit(template, resource)
    by_node = "gpusPerNode" if ways[0] == "gpus" else "processingUnitsPerNode"
    per_node = spec.integer(by_node, minimum=1) or per_node
    found = gpu_units.spread(number, per_node)
    if found is None:
        spec.note(ways[0], f"{gpu_units.uneven(number, per_node)} ({by_node} is {per_node})")
    return found or (1, number)


def limit(template: Mapping[str, Any], resource: str) -> int:
    """The units that a template's own limits give to a worker."""
    first = (containers(template) or [{}])[0]
    value = str(mapping(mapping(first.get("resources")).get("limits")).get(resource))
    return natural(value) or 0


def mapping(value: Json) -> dict[str, Json]:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def launcher(template: Mapping[str, Any], *, on_master: bool) -> Replica:
    """The launcher: the template without the workers' resources, on a control plane's node if it should be."""
    found = containers(template)
    if not found:
        return Replica(1, template, "OnFailure")
    first = {key: value for key, value in found[0].items() if key != "resources"}
    spec = {key: value for key, value in template["spec"].items() if key != "restartPolicy"}
    spec["containers"] = [first, *found[1:]]
    if on_master:
        spec |= on_masters()
    policy = "Never" if template["spec"].get("restartPolicy") == "Never" else "OnFailure"
    return Replica(1, {**template, "spec": spec}, policy)


def on_masters() -> dict[str, Any]:
    """Scheduling to the nodes of the control plane, by their old label or by today's."""
    terms = [{"matchExpressions": [{"key": name, "operator": "Exists"}]} for name in MASTERS]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {
        "tolerations": [{"key": name, "effect": "NoSchedule", "operator": "Exists"} for name in MASTERS],
        "affinity": {"nodeAffinity": required},
    }


def workers_template(template: Mapping[str, Any], resource: str, each: int) -> Mapping[str, Any]:
    """The workers' template: the command is the launcher's alone, the units are each worker's."""
    found = containers(template)
    if not found:
        return template
    first = {key: value for key, value in found[0].items() if key not in ("command", "args")}
    if each:
        resources = mapping(first.get("resources"))
        first["resources"] = {**resources, "limits": {**mapping(resources.get("limits")), resource: each}}
    spec = {key: value for key, value in template["spec"].items() if key != "restartPolicy"}
    return {**template, "spec": {**spec, "containers": [first, *found[1:]]}}
