"""The pods of the openmpi prototype: one launcher, and workers that end when it is gone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiboot.job import mpi
from mpiboot.job.errors import UserError
from mpiboot.job.job_annotations import ISTIO
from mpiboot.job.plan import delivery, objects
from mpiboot.job.prototypes.mpi_job import IMAGE
from mpiboot.job.prototypes.openmpi_data import KEYS_DIR
from mpiboot.job.prototypes.parameter_values import whole
from mpiboot.job.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpiboot.job.prototypes.openmpi_data import Data
    from mpiboot.job.prototypes.parameter_values import ParameterValues
    from mpiboot.job.prototypes.prototype import Object

HOME = "/kubeflow/openmpi"
ASSETS, SECRETS, DATA = f"{HOME}/assets", f"{HOME}/secrets", f"{HOME}/data"
LAUNCH, SERVE = "launch.sh", "serve.sh"
SSH_PORT = 2222
RUNTIME = mpi.named("OpenMPI")
# Open MPI 4's name, then 5's, where they differ.
MCA = {
    **dict(RUNTIME.unbound),
    "OMPI_MCA_rmaps_base_mapping_policy": "slot",
    "PRTE_MCA_rmaps_default_mapping_policy": "slot",
    "OMPI_MCA_btl_tcp_if_exclude": "lo,docker0",
    # For a shell beside the launcher; `mpiboot launch` puts its own in their place.
    **dict.fromkeys(RUNTIME.hostfile_variables, f"{ASSETS}/hostfile"),
    **dict.fromkeys(RUNTIME.full_names, "true"),
}
# A launcher has no ranks. Without this, a container runtime that assigns GPUs by default gives it all of them.
NO_GPU = {"NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""}


@dataclass(frozen=True)
class Cluster:
    """What all objects refer to."""

    name: str
    namespace: str
    workers: int
    slots: int
    secret: str

    @property
    def config_map(self) -> str:
        return f"{self.name}-assets"

    @property
    def master(self) -> str:
        return f"{self.name}-master"

    @property
    def hosts(self) -> list[str]:
        return [self.host(self.worker(index)) for index in range(self.workers)]

    def worker(self, index: int) -> str:
        return f"{self.name}-worker-{index}"

    def host(self, pod: str) -> str:
        return f"{pod}.{self.name}.{self.namespace}"

    def metadata(self, name: str, role: str = "") -> Object:
        labels = {"app": self.name, **({"role": role} if role else {})}
        return {"name": name, "namespace": self.namespace, "labels": labels}


@dataclass(frozen=True)
class Shared:
    """What both roles have in common: fields of the pod's spec, and of its one container."""

    spec: Mapping[str, Any]
    container: Mapping[str, Any]


def master(given: ParameterValues, cluster: Cluster, shared: Shared, data: Data) -> Object:
    """The launcher's pod. It is never restarted: its exit code is the command's."""
    before = ["/bin/sh", f"{ASSETS}/{LAUNCH}"] if is_foreign(given) else ["mpiboot", "launch", "--"]
    words = [*before, "/bin/sh", "-c", unexpanded(given.exact("exec") or "sleep infinity")]
    env = {
        "MPIBOOT_HOSTFILE": f"{ASSETS}/hostfile",
        "MPIBOOT_SSH_DIR": SECRETS,
        "MPIBOOT_INIT_TIMEOUT": str(given.count("initTimeout")),
        "MPIBOOT_FORWARD_ENV": "LD_LIBRARY_PATH",
        "MPIBOOT_END_WORKERS": "1",
        **data.environment(cluster.master),
        **MCA,
        **NO_GPU,
    }
    container = {"command": words, "env": variables(env)}
    return pod(cluster, cluster.master, "master", shared, container, {}, data)


def worker(given: ParameterValues, cluster: Cluster, shared: Shared, data: Data, index: int) -> Object:
    """A worker's pod: sshd, until the launcher's name is gone from DNS."""
    name = cluster.worker(index)
    env = {
        "MPIBOOT_SSH_DIR": SECRETS,
        "MPIBOOT_LAUNCHER": cluster.host(cluster.master),
        "MPIBOOT_INIT_TIMEOUT": str(given.count("initTimeout")),
        **data.environment(name),
    }
    serve = ["/bin/sh", f"{ASSETS}/{SERVE}"] if is_foreign(given) else ["mpiboot", "worker"]
    container: Object = {"command": serve, "env": variables(env)}
    limits = limits_of(given)
    if limits:
        container["resources"] = {"limits": limits}
    spec: Object = {}
    if selector := given.pairs("nodeSelector"):
        spec["nodeSelector"] = selector
    if given.switch("useHostNetwork"):
        spec |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
        # The scheduler keeps workers apart that need the same port of a node.
        container["ports"] = [{"name": "ssh", "containerPort": SSH_PORT}]
    return pod(cluster, name, "worker", shared, container, spec, data)


def pod(cluster: Cluster, name: str, role: str, shared: Shared, container: Object, spec: Object, data: Data) -> Object:
    metadata = {**cluster.metadata(name, role), "annotations": {ISTIO: "false"}}
    placed = {"hostname": name, "subdomain": cluster.name, "restartPolicy": "Never", **spec}
    more = data.containers(name, shared.container)
    first = [*shared.spec.get("initContainers", ()), *more.get("initContainers", ())]
    beside = more.get("containers", ())
    containers = [{"name": "openmpi", **shared.container, **container}, *beside]
    filled = {**placed, **shared.spec, **({"initContainers": first} if first else {}), "containers": containers}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": filled}


def is_foreign(given: ParameterValues) -> bool:
    """Whether the image's name does not show that it holds mpiboot."""
    return not Settings().is_own(given.text("image") or IMAGE)


def scripts() -> dict[str, str]:
    """The scripts that launcher and workers run in such an image. They find mpiboot in it if it is there."""
    here = Path(__file__).parent
    files = {LAUNCH: "openmpi_launch.sh", SERVE: "openmpi_serve.sh"}
    return {objects.GUARD: objects.guard(), **{name: (here / file).read_text() for name, file in files.items()}}


def shared(given: ParameterValues, cluster: Cluster, data: Data) -> Shared:
    """Image, users, accounts, volumes."""
    volumes, mounts = volumes_of(given, cluster, data)
    pulls = [{"name": name} for name in given.names("imagePullSecrets")]
    account = given.text("serviceAccountName")
    context = security_context(given)
    spec: Object = {
        "schedulerName": given.text("schedulerName") or "default-scheduler",
        **({"serviceAccountName": account} if account else {}),
        **({"imagePullSecrets": pulls} if pulls else {}),
        **({"securityContext": context} if context else {}),
        "volumes": volumes,
    }
    if bringer := given.text("deliveryImage"):
        ssh = delivery.volume(Settings(delivery_image=bringer))
        mount = {"name": ssh.name, "mountPath": "/delivered"}
        spec["volumes"] = [*volumes, {"name": ssh.name, **ssh.source}]
        spec["initContainers"] = [{**(ssh.filler or {}), "volumeMounts": [mount]}]
        mounts = [*mounts, {"name": ssh.name, "mountPath": ssh.path}]
    policy = given.chosen("imagePullPolicy", ("IfNotPresent", "Always", "Never"))
    return Shared(spec, {"image": given.text("image") or IMAGE, "imagePullPolicy": policy, "volumeMounts": mounts})


def security_context(given: ParameterValues) -> Object:
    ids = {name: given.whole(name) for name in ("runAsUser", "runAsGroup")}
    groups = [whole(each, "--supplementalGroups: each", 0) for each in given.names("supplementalGroups")]
    return {**{name: number for name, number in ids.items() if number is not None},
            **({"supplementalGroups": groups} if groups else {})}  # fmt: skip


def volumes_of(given: ParameterValues, cluster: Cluster, data: Data) -> tuple[list[Object], list[Object]]:
    """The user's volumes and ours, and where each is mounted."""
    theirs, mounts = given.mappings("volumes"), given.mappings("volumeMounts")
    sources: dict[str, tuple[str, Object]] = {
        "openmpi-assets": (ASSETS, {"configMap": {"name": cluster.config_map}}),
        # Any user must be able to read the keys; mpiboot works with private copies.
        "openmpi-secrets": (SECRETS, {"secret": {"secretName": cluster.secret, "defaultMode": 0o444}}),
        "openmpi-data": (DATA, {"emptyDir": {}}),
    }
    if data.any and data.secret:
        sources["openmpi-s3"] = (KEYS_DIR, {"secret": {"secretName": data.secret, "defaultMode": 0o444}})
    taken = {str(mount.get("mountPath", "")).rstrip("/") for mount in mounts}
    if DATA in taken:  # a volume of the user's may outlive the pods, so it is used instead
        del sources["openmpi-data"]
    check(theirs, mounts, sources, taken)
    ours = [{"name": name, **source} for name, (_, source) in sources.items()]
    mounted = [{"name": name, "mountPath": path} for name, (path, _) in sources.items()]
    return [*ours, *theirs], [*mounted, *mounts]


def check(theirs: Sequence[Object], mounts: Sequence[Object], sources: Mapping[str, Any], taken: set[str]) -> None:
    """Refuse what the API server would refuse only after half of the pods exist."""
    known = [each["name"] for each in theirs]
    for name in known:
        if name in sources or known.count(name) > 1:
            raise UserError(f"--volumes: the name {name!r} is taken, choose another")
    for mount in mounts:
        if mount["name"] not in known:
            raise UserError(f"--volumeMounts: there is no volume {mount['name']!r} in --volumes")
        if not mount.get("mountPath"):
            raise UserError(f"--volumeMounts: {mount['name']!r} has no mountPath")
    for path, _ in sources.values():
        if path in taken:
            raise UserError(f"--volumeMounts: {path} is taken, choose another mountPath")


def limits_of(given: ParameterValues) -> Object:
    """GPUs, CPU, memory, and other resources of the cluster."""
    gpus = given.count("gpu")
    found: Object = {name: value for name in ("cpu", "memory") if (value := given.text(name))}
    return {**({"nvidia.com/gpu": gpus} if gpus else {}), **found, **given.pairs("customResources")}


def unexpanded(command: str) -> str:
    """The text that Kubernetes turns into `command`: it expands `$(NAME)` and `$$`."""
    return command.replace("$", "$$") if "$$" in command or "$(" in command else command


def variables(env: Mapping[str, str]) -> list[Object]:
    return [{"name": name, "value": value} for name, value in env.items()]
