"""Converts a job of an older version to v2beta1, with a comment at each field that changed or was dropped."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from mpiboot.job import elastic, mpi
from mpiboot.job.check.yaml_comments import Note, commented
from mpiboot.job.plan import pods
from mpiboot.job.plan.workers import SERVES
from mpiboot.job.read.read import read
from mpiboot.job.template import main_index, spec_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.job.model import Job, RunPolicy
    from mpiboot.job.problems import Problem
    from mpiboot.job.read.manifest import Manifest
    from mpiboot.job.settings import Settings

NEWEST = "kubeflow.org/v2beta1"
SPECS = "spec.mpiReplicaSpecs"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# The limits that older versions have at the top level of the spec.
ABOVE = {
    "v1": ("cleanPodPolicy",),
    "v1alpha2": ("cleanPodPolicy", "backoffLimit", "activeDeadlineSeconds"),
    "v1alpha1": ("backoffLimit", "activeDeadlineSeconds"),
}
CLUSTERS_OWN = ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields",
                "ownerReferences", "resourceVersion", "selfLink", "uid")  # fmt: skip


def convert(manifest: Manifest, settings: Settings) -> str:
    """The manifest's text in v2beta1. Raises ManifestError for a job that could not run."""
    found = read(manifest, units_per_node=settings.units_per_node)
    work = _Conversion(manifest.data, found.job)
    data = work.converted(settings)
    return commented(data, [*work.notes, *(moved(problem, found.job) for problem in found.warnings)])


def moved(problem: Problem, job: Job) -> Note:
    """A problem of the old manifest where its field is now."""
    path = problem.path
    if job.dialect == "v1alpha1" and path.startswith("spec.template"):
        path = f"{SPECS}.Launcher{path.removeprefix('spec')}"
    return Note(path, problem.message)


@dataclass
class _Conversion:
    data: Mapping[str, Any]
    job: Job
    notes: list[Note] = field(default_factory=list)

    def note(self, path: str, message: str) -> None:
        self.notes.append(Note(path, message))

    @property
    def given(self) -> Mapping[str, Any]:
        spec: Mapping[str, Any] = self.data["spec"]
        return spec

    def converted(self, settings: Settings) -> dict[str, Any]:
        if self.data["apiVersion"] != NEWEST:
            self.note("apiVersion", f"was {self.data['apiVersion']}")
        if "status" in self.data:
            self.note("", "status is dropped: the cluster writes it")
        return {
            "apiVersion": NEWEST,
            "kind": "MPIJob",
            "metadata": self.metadata(),
            "spec": {**self.settings(), "runPolicy": self.run_policy(), "mpiReplicaSpecs": self.replicas(settings)},
        }

    def metadata(self) -> dict[str, Any]:
        given = dict(self.data["metadata"])
        annotations = dict(given.get("annotations") or {})
        dropped = [name for name in CLUSTERS_OWN if given.pop(name, None) is not None]
        if annotations.pop(LAST_APPLIED, None) is not None:
            dropped.append(LAST_APPLIED)
            given["annotations"] = annotations
            if not annotations:
                del given["annotations"]
        if dropped:
            self.note("metadata", f"dropped, because the cluster writes them: {', '.join(dropped)}")
        return given

    def settings(self) -> dict[str, Any]:
        job, given = self.job, self.given
        spec: dict[str, Any] = {"slotsPerWorker": job.slots_per_worker}
        if job.dialect == "v1alpha1" and given.get("slotsPerWorker") is None:
            self.note("spec.slotsPerWorker", "as many as a worker has processing units")
        if given.get("mpiDistribution"):
            self.note("spec.mpiImplementation", f"was mpiDistribution: {given['mpiDistribution']}")
        if job.runtime != mpi.DEFAULT or given.get("mpiDistribution") or given.get("mpiImplementation"):
            spec["mpiImplementation"] = job.implementation
        if given.get("sshAuthMountPath"):
            spec["sshAuthMountPath"] = job.ssh_auth_mount_path
        if job.run_launcher_as_worker:
            spec["runLauncherAsWorker"] = True
        if job.launcher_creation_policy != "AtStartup":
            spec["launcherCreationPolicy"] = job.launcher_creation_policy
            if job.dialect == "v1alpha1":
                self.note("spec.launcherCreationPolicy", "v1alpha1 creates the launcher when all workers are ready")
        return spec

    def run_policy(self) -> dict[str, Any]:
        job, given = self.job, self.given
        inner = given.get("runPolicy") or {}
        result = {**inner, **words(job.run_policy)}
        if job.dialect == "v1alpha1":
            self.note("spec.runPolicy.cleanPodPolicy", "v1alpha1 removes the workers when the launcher has ended")
        for name in ABOVE.get(job.dialect, ()):
            if given.get(name) is None:
                continue
            if inner.get(name) is None:
                self.note(f"spec.runPolicy.{name}", f"was spec.{name}")
            elif inner[name] != given[name]:
                dropped = f"spec.{name}: {given[name]} is dropped: the value in runPolicy wins"
                self.note(f"spec.runPolicy.{name}", dropped)
        return result

    def replicas(self, settings: Settings) -> dict[str, Any]:
        job = self.job
        launcher: dict[str, Any] = {"replicas": 1, "restartPolicy": job.launcher.restart_policy}
        if job.dialect in ("v1", "v1alpha2") and not self.given_replica("Launcher").get("restartPolicy"):
            self.note(f"{SPECS}.Launcher.restartPolicy", f"{job.dialect}'s default; v2beta1's is OnFailure")
        launcher["template"] = self.template("Launcher", job.launcher.template)
        self.add_slots(launcher["template"])
        if job.dialect == "v1alpha1":
            self.note(f"{SPECS}.Launcher", "was spec.template, without the resources: they are the workers'")
        if job.worker is None:
            return {"Launcher": launcher}
        worker: dict[str, Any] = {"replicas": job.worker.replicas, "restartPolicy": job.worker.restart_policy}
        if job.worker.restart_policy == "Always":
            worker["restartPolicy"] = "OnFailure"
            self.note(f"{SPECS}.Worker.restartPolicy", "was Always, which v2beta1 does not have")
        worker["template"] = self.template("Worker", job.worker.template)
        if job.dialect == "v1alpha1":
            self.note(f"{SPECS}.Worker.replicas", self.arithmetic(settings.units_per_node))
            self.note(f"{SPECS}.Worker.template", "was spec.template, without the command: it is the launcher's")
            container = worker["template"]["spec"]["containers"][0]
            if settings.is_own(str(container.get("image"))):
                container["command"] = list(SERVES)
        return {"Launcher": launcher, "Worker": worker}

    def given_replica(self, role: str) -> Mapping[str, Any]:
        replica: Mapping[str, Any] = (self.given.get("mpiReplicaSpecs") or {}).get(role) or {}
        return replica

    def template(self, role: str, template: Mapping[str, Any]) -> dict[str, Any]:
        """The template with its main container first, where v2beta1 looks, and with text where text is needed."""
        spec = dict(spec_of(template))
        containers = [dict(pods.with_text(container)) for container in spec.get("containers") or ()]
        index = main_index(template, self.job.main_container)
        if index:
            containers.insert(0, containers.pop(index))
            message = f"{self.job.main_container} comes first: v2beta1 has no mainContainer"
            self.note(f"{SPECS}.{role}.template.spec.containers", message)
        if spec.get("nodeSelector"):
            spec["nodeSelector"] = pods.texts(spec["nodeSelector"])
        metadata = {
            name: pods.texts(value) if name in ("labels", "annotations") and value else value
            for name, value in (template.get("metadata") or {}).items()
            if name not in CLUSTERS_OWN
        }
        return {**({"metadata": metadata} if metadata else {}), "spec": {**spec, "containers": containers}}

    def add_slots(self, template: dict[str, Any]) -> None:
        """v2beta1's discovery script prints no slots, so an elastic command must give them."""
        if self.job.dialect == "v2beta1" or elastic.of_job(self.job) is None:
            return
        container = template["spec"]["containers"][0]
        words = [str(word) for name in ("command", "args") for word in container.get(name) or ()]
        if any("--slots" in word for word in words):
            return
        option = ["--slots-per-host", str(self.job.slots_per_worker)]
        path = f"{SPECS}.Launcher.template.spec.containers[0]"
        for name in ("command", "args"):
            for position, word in enumerate(container.get(name) or ()):
                if PurePosixPath(str(word)).name == "horovodrun":
                    added_to, at = (name, position + 1) if name == "args" or "args" not in container else ("args", 0)
                    container[added_to] = [*container[added_to][:at], *option, *container[added_to][at:]]
                    message = f"{' '.join(option)} is new: v2beta1's discover_hosts.sh prints hosts without slots"
                    self.note(f"{path}.{added_to}", message)
                    return
        self.note(path, f"v2beta1's discover_hosts.sh prints hosts without slots: add {' '.join(option)}")

    def arithmetic(self, usual: int) -> str:
        """Where the number of workers comes from."""
        job, given = self.job, self.given
        for total, per_node in (("gpus", "gpusPerNode"), ("processingUnits", "processingUnitsPerNode")):
            if given.get(total) is not None:
                each = given.get(per_node) or usual
                workers = "1 worker has them" if job.workers == 1 else f"{job.workers} x {each}"
                return f"was {total}: {given[total]}, at most {each} a node: {workers}"
        return "was spec.replicas"


def words(policy: RunPolicy) -> dict[str, Any]:
    """The limits as fields of `runPolicy`. A value that equals Kubernetes' own default is left out."""
    found = {
        "cleanPodPolicy": policy.clean_pod_policy,
        "backoffLimit": policy.backoff_limit if policy.backoff_limit != 6 else None,
        "activeDeadlineSeconds": policy.active_deadline_seconds,
    }
    return {name: value for name, value in found.items() if value is not None}
