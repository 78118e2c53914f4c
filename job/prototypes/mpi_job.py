"""The prototypes mpi-job-simple and mpi-job-custom: an MPIJob by its number of GPUs, or by its workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpiboot.job import gpu_units
from mpiboot.job.errors import UserError
from mpiboot.job.model import OUR_USERS_SSH
from mpiboot.job.prototypes.prototype import Manifests, Object, Parameter, Prototype
from mpiboot.job.settings import Settings

if TYPE_CHECKING:
    from mpiboot.job.prototypes.parameter_values import ParameterValues

IMAGE = "mpiboot/openmpi:latest"
# In all of our images; without -n there is one rank for each slot of the hostfile.
COMPUTES_PI = ["mpirun", "python3", "-m", "mpiboot.demo"]
VERSIONS = ("v2beta1", "v1alpha1")
GPU = "nvidia.com/gpu"
STORAGE = "persistent-storage"

IMAGE_PARAMETER = Parameter("image", IMAGE, "Image of launcher and workers.")
COMMAND_PARAMETERS = (
    Parameter("command", "null", "Command of the launcher, split at commas. null: the image's own; in an image of"
              " mpiboot, which has none, a program that computes pi."),
    Parameter("args", "null", "Arguments of the launcher, split at commas. null: none."),
    Parameter("version", "v2beta1", f"Version of the MPIJob: {' or '.join(VERSIONS)}."),
)  # fmt: skip


def simple(given: ParameterValues) -> Manifests:
    """A job for a number of GPUs, spread over workers that each fill a node."""
    gpus, per_node = given.count("gpus"), given.count("gpusPerNode", least=1)
    workers, each = spread(gpus, per_node)
    container = main_container(given)
    if version(given) == "v1alpha1":
        size = {"gpus": gpus, "gpusPerNode": per_node} if gpus else {"replicas": 1}
        return Manifests((old_job(given, size, container, {}),))
    return Manifests((job(given, workers, each, container, {}),))


def custom(given: ParameterValues) -> Manifests:
    """A job of so many workers with so many GPUs each, and maybe a volume."""
    workers, each = given.count("replicas", least=1), given.count("gpusPerReplica")
    claim = given.both("pvcName", "volumeMountPath")
    container, pod = main_container(given), {}
    if claim:
        container["volumeMounts"] = [{"name": STORAGE, "mountPath": claim[1]}]
        pod = {"volumes": [{"name": STORAGE, "persistentVolumeClaim": {"claimName": claim[0]}}]}
    if version(given) == "v1alpha1":
        return Manifests((old_job(given, {"replicas": workers}, with_gpus(container, each), pod),))
    return Manifests((job(given, workers, each, container, pod),))


def spread(gpus: int, per_node: int) -> tuple[int, int]:
    """Workers and GPUs of each."""
    found = gpu_units.spread(gpus, per_node)
    if found is None:
        raise UserError(f"--gpus {gpus} with --gpusPerNode {per_node}: {gpu_units.uneven(gpus, per_node)}")
    return found


def version(given: ParameterValues) -> str:
    return given.chosen("version", VERSIONS)


def main_container(given: ParameterValues) -> dict[str, Any]:
    """The container of the launcher; without its command, that of a worker."""
    image = given.text("image") or IMAGE
    command, args = given.commas("command"), given.commas("args")
    if not command and not args and Settings().is_own(image):
        command = COMPUTES_PI
    container: dict[str, Any] = {"name": given.name, "image": image}
    if Settings().is_own(image):
        # Users build and load these images themselves; for the tag `latest` Kubernetes would ask a registry.
        container["imagePullPolicy"] = "IfNotPresent"
    return container | {key: words for key, words in (("command", command), ("args", args)) if words}


def with_gpus(container: dict[str, Any], each: int) -> dict[str, Any]:
    return {**container, "resources": {"limits": {GPU: each}}} if each else container


def metadata(given: ParameterValues) -> dict[str, str]:
    return {"name": given.name, **({"namespace": given.namespace} if given.namespace else {})}


def job(given: ParameterValues, workers: int, each: int, container: Object, pod: Object) -> Object:
    """A v2beta1 MPIJob: a rank for each GPU. The launcher has none, and the workers serve SSH."""
    serving = {key: value for key, value in container.items() if key not in ("command", "args")}
    spec: dict[str, Any] = {"slotsPerWorker": max(each, 1)}
    if Settings().is_own(container["image"]):
        spec["sshAuthMountPath"] = OUR_USERS_SSH
    # In v1alpha1 the workers are removed when the launcher ends, which frees their GPUs.
    spec["runPolicy"] = {"cleanPodPolicy": "All"}
    spec["mpiReplicaSpecs"] = {
        "Launcher": replica(1, container, pod),
        "Worker": replica(workers, with_gpus(serving, each), pod),
    }
    return {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": metadata(given), "spec": spec}


def replica(count: int, container: dict[str, Any], pod: dict[str, Any]) -> dict[str, Any]:
    return {"replicas": count, "template": {"spec": {**pod, "containers": [container]}}}


def old_job(given: ParameterValues, size: dict[str, int], container: Object, pod: Object) -> Object:
    """A v1alpha1 MPIJob: one template for both roles."""
    template = {"spec": {**pod, "containers": [container]}}
    spec = {**size, "template": template}
    return {"apiVersion": "kubeflow.org/v1alpha1", "kind": "MPIJob", "metadata": metadata(given), "spec": spec}


SIMPLE = Prototype(
    "mpi-job-simple",
    "Make an MPIJob for a number of GPUs.",
    (
        Parameter("gpus", "1", "GPUs of the job. Fewer than gpusPerNode: one worker. A multiple of it: full workers."),
        Parameter("gpusPerNode", str(gpu_units.DEFAULT_PER_NODE), "GPUs of a full worker."),
        IMAGE_PARAMETER,
        *COMMAND_PARAMETERS,
    ),
    simple,
)

CUSTOM = Prototype(
    "mpi-job-custom",
    "Make an MPIJob of so many workers with so many GPUs each.",
    (
        Parameter("replicas", "1", "Workers."),
        Parameter("gpusPerReplica", "1", "GPUs of each worker; 0: none, and one rank each."),
        IMAGE_PARAMETER,
        *COMMAND_PARAMETERS,
        Parameter("pvcName", "null", "PersistentVolumeClaim that all pods mount; requires volumeMountPath."),
        Parameter("volumeMountPath", "null", "Path where it is mounted; requires pvcName."),
    ),
    custom,
)
