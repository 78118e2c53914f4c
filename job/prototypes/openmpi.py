"""The prototype openmpi: plain pods, a Service and a ConfigMap, without an operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.job import names
from mpiboot.job.errors import UserError
from mpiboot.job.prototypes import openmpi_pods as pods
from mpiboot.job.prototypes.mpi_job import IMAGE
from mpiboot.job.prototypes.openmpi_data import data_of
from mpiboot.job.prototypes.prototype import Manifests, Object, Parameter, Prototype
from mpiboot.job.read.fields import MOST_WORKERS

if TYPE_CHECKING:
    from mpiboot.job.prototypes.parameter_values import ParameterValues

WITHOUT_MEANING = ("controllerImage", "init")
FILES = "id_rsa, id_rsa.pub and authorized_keys"


def openmpi(given: ParameterValues) -> Manifests:
    """ConfigMap and Service, then the launcher, then the workers: what a pod needs is there before it."""
    cluster = cluster_of(given)
    data = data_of(given, cluster.namespace)
    shared = pods.shared(given, cluster, data)
    workers = [pods.worker(given, cluster, shared, data, index) for index in range(cluster.workers)]
    objects = (config_map(given, cluster), service(cluster), pods.master(given, cluster, shared, data), *workers)
    return Manifests(objects, notes(given, cluster))


def cluster_of(given: ParameterValues) -> pods.Cluster:
    workers = given.count("workers", least=1, most=MOST_WORKERS)  # a manifest for each
    if fault := names.job_name_fault(given.name, workers) or names.label_fault(f"{given.name}-master"):
        raise UserError(f"NAME {given.name!r} {fault}")
    secret = given.required("secret", f"the name of a Secret with {FILES}, made with ssh-keygen")
    gpus = given.count("gpu")
    return pods.Cluster(given.name, given.namespace or "default", workers, max(1, gpus), secret)


def config_map(given: ParameterValues, cluster: pods.Cluster) -> Object:
    lines = (pods.RUNTIME.hostfile.line(host, cluster.slots) for host in cluster.hosts)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": cluster.metadata(cluster.config_map),
        "data": {"hostfile": "".join(lines), **(pods.scripts() if pods.is_foreign(given) else {})},
    }


def service(cluster: pods.Cluster) -> Object:
    """The Service that gives every pod a DNS name as soon as the pod has an address."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": cluster.metadata(cluster.name),
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"app": cluster.name}},
    }


def notes(given: ParameterValues, cluster: pods.Cluster) -> tuple[str, ...]:
    lines = [f"Needs the Secret {cluster.secret} in the namespace {cluster.namespace}, with {FILES}."]
    image = given.text("image") or IMAGE
    if pods.is_foreign(given):
        has = "an MPI" if given.text("deliveryImage") else "an MPI, an SSH server and an SSH client"
        lines.append(f"{image} must contain {has}. It may contain mpiboot: it is used then.")
    values = {parameter: given.text(parameter) for parameter in WITHOUT_MEANING}
    useless = [f"{key}={' '.join(value.split())}" for key, value in values.items() if value]
    return (*lines, *(f"{each} is not used: mpiboot does its work." for each in useless))


OPENMPI = Prototype(
    "openmpi",
    "Make an Open MPI job of plain pods that needs no operator.",
    (
        Parameter("image", IMAGE, "Image of all pods: one of mpiboot's, or any with an MPI and OpenSSH."),
        Parameter("deliveryImage", "null", "mpiboot's image delivery, for an image without OpenSSH."),
        Parameter("dataImage", "null", "An image of mpiboot's with boto3 that moves the data for an image without."),
        Parameter("secret", None, f"Your Secret with {FILES}; keys of any type."),
        Parameter("workers", "4", "Workers."),
        Parameter("init", "null", "Bootstrap script. Not used, because mpiboot has its own; a comment names it."),
        Parameter("exec", "null", "Command of the launcher, for a shell. null: sleep infinity."),
        Parameter("imagePullPolicy", "IfNotPresent", "Always, IfNotPresent or Never."),
        Parameter("imagePullSecrets", "null", "Secrets for the image's registry, separated by commas."),
        Parameter("gpu", "0", "GPUs of each worker. More than one are as many slots."),
        Parameter("cpu", "null", "CPU limit of each worker."),
        Parameter("memory", "null", "Memory limit of each worker."),
        Parameter("customResources", "null", "More limits of each worker: resource=amount, separated by commas."),
        Parameter("serviceAccountName", "null", "Service account of all pods."),
        Parameter("schedulerName", "default-scheduler", "Scheduler of all pods."),
        Parameter("controllerImage", "null", "Image of a sidecar. Not used, because mpiboot needs none; a comment"
                  " names it."),
        Parameter("initTimeout", "300", "Seconds to wait for the workers; then the launcher exits 124. A worker waits"
                  " as long for its launcher."),
        Parameter("nodeSelector", "null", "Labels of the workers' nodes: k=v, separated by commas."),
        Parameter("s3Secret", "null", "Secret with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; AWS_SESSION_TOKEN,"
                  " AWS_DEFAULT_REGION and AWS_ENDPOINT_URL in it are used as well."),
        Parameter("downloadDataFrom", "null", "s3://BUCKET/PREFIX to fetch into each pod before the run."),
        Parameter("downloadDataTo", "null", "Directory for it; /kubeflow/openmpi/data is there for that."),
        Parameter("uploadDataFrom", "null", "Directory of each pod to store after the run."),
        Parameter("uploadDataTo", "null", "s3://BUCKET/PREFIX for it; namespace, name and pod are appended."),
        Parameter("runAsUser", "null", "User id of all pods."),
        Parameter("runAsGroup", "null", "Group id of all pods."),
        Parameter("supplementalGroups", "null", "More group ids of all pods, separated by commas."),
        Parameter("volumes", "[]", "Volumes of all pods, as JSON or YAML."),
        Parameter("volumeMounts", "[]", "Where all pods mount them, as JSON or YAML."),
        Parameter("useHostNetwork", "false", "true: the workers use the network of their node."),
    ),
    openmpi,
)  # fmt: skip
