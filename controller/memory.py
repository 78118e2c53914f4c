"""What the operator remembers of a job between two looks. All of it can be lost: it only saves work."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mpiboot.controller.dead import Losses
from mpiboot.controller.named import Named
from mpiboot.job import wishes
from mpiboot.job.manifest import Manifest
from mpiboot.job.plan import plan
from mpiboot.job.read import read
from mpiboot.ssh.keys import generate

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.controller.view import MpiJobView
    from mpiboot.job.material import SshMaterial
    from mpiboot.job.model import Job
    from mpiboot.job.plan import Plan
    from mpiboot.job.problems import Problem
    from mpiboot.job.settings import Settings
    from mpiboot.ssh.keys import KeyType


HICCUP = 2.0  # seconds; an API server that fails for so long is no longer one that fails now and then
NUDGES = (0.5, 0.8, 1.5, 3.0, 6.0)  # seconds from one to the next


def annotation(name: str) -> Callable[[Job], object]:
    return lambda job: job.annotations.get(name)


# What pods are made of. A running job's pods keep what they were made with.
FIXED: dict[str, Callable[[Job], object]] = {
    "spec.mpiReplicaSpecs.Worker.template": lambda job: job.worker and job.worker.template,
    "spec.mpiReplicaSpecs.Worker.restartPolicy": lambda job: job.worker and job.worker.restart_policy,
    "spec.sshAuthMountPath": lambda job: job.ssh_auth_mount_path,
    "spec.runLauncherAsWorker": lambda job: job.run_launcher_as_worker,
    "spec.mainContainer": lambda job: job.main_container,
    **{f"metadata.annotations[{name}]": annotation(name) for name in wishes.CHOICES},
}
# What the launcher's Job and its files are made of, which under WaitForWorkersReady come later.
LAUNCHERS: dict[str, Callable[[Job], object]] = {
    "spec.mpiReplicaSpecs.Launcher.template": lambda job: job.launcher.template,
    "spec.mpiReplicaSpecs.Launcher.restartPolicy": lambda job: job.launcher.restart_policy,
    "spec.slotsPerWorker": lambda job: job.slots_per_worker,
    "spec.mpiImplementation": lambda job: job.implementation,
    "spec.launcherCreationPolicy": lambda job: job.launcher_creation_policy,
    "spec.runPolicy.activeDeadlineSeconds": lambda job: job.run_policy.active_deadline_seconds,
    "spec.runPolicy.backoffLimit": lambda job: job.run_policy.backoff_limit,
}


def ignored(before: Job, after: Job, *, has_launcher: bool) -> tuple[str, ...]:
    """Which changed fields a running job cannot follow. One that is suspended is made anew when it resumes."""
    if before.run_policy.suspend or after.run_policy.suspend:
        return ()
    fields = {**LAUNCHERS, **FIXED} if has_launcher else FIXED
    return tuple(path for path, value in fields.items() if value(before) != value(after))


@dataclass
class Pace:
    """Lets something through once in `every` seconds."""

    every: float
    last: float = float("-inf")

    def wait(self) -> float:
        """Seconds until the next may go; 0 for now."""
        return max(0.0, self.last + self.every - time.monotonic())

    def went(self) -> None:
        self.last = time.monotonic()


@dataclass
class Failing:
    """Tells a failure that lasts from one that is over at the next try."""

    since: float | None = None

    def lasts(self, now: float) -> bool:
        """Whether this failure, with those before it, is worth telling."""
        if self.since is None:
            self.since = now
        return now - self.since >= HICCUP

    def over(self) -> None:
        self.since = None


@dataclass
class Nudges:
    """Marks that make a kubelet look at a ConfigMap. It may look before it has heard of the change, so it is asked
    several times.
    """

    data: str = ""
    times: int = 0
    last: float = 0.0

    def mark(self, data: str, now: float) -> str:
        """What launchers of these data shall carry now; empty for those that need no mark."""
        if data != self.data:
            self.data, self.times, self.last = data, 1, now
        elif self._open and now >= self._next:
            self.times, self.last = self.times + 1, now
        return data and f"{data}.{self.times}"

    def wait(self, now: float) -> float:
        """Seconds until there is another mark; 0 if there is none to come."""
        return max(0.001, self._next - now) if self._open else 0.0

    @property
    def _open(self) -> bool:
        return bool(self.data) and self.times <= len(NUDGES)

    @property
    def _next(self) -> float:
        return self.last + NUDGES[self.times - 1]


@dataclass
class Memory:
    """One job's. `uid` tells it from another of the same name."""

    uid: str
    born: float = field(default_factory=time.monotonic)
    has_secret: bool = False
    has_launcher: bool = False
    one_pair: bool = False  # the Secret is that of another operator, from which we took the job over
    told: set[object] = field(default_factory=set)
    status: Pace = field(default_factory=lambda: Pace(1.0))
    hosts: Pace = field(default_factory=lambda: Pace(0.5))
    nudges: Nudges = field(default_factory=Nudges)
    failing: Failing = field(default_factory=Failing)
    losses: Losses = field(default_factory=Losses)
    named: Named = field(default_factory=Named)
    plan: Plan | None = None
    warnings: tuple[Problem, ...] = ()
    ignored: tuple[str, ...] = ()  # fields whose latest change comes too late
    _mark: str = ""
    _wanted: Job | None = None  # as its manifest says; the plan's may differ

    def look_at(self, view: MpiJobView, settings: Settings, key_type: KeyType) -> Plan:
        """The job's plan, made anew only after an edit. Raises ManifestError; `plan` is then what it was before."""
        meta = view.raw["metadata"]
        mark = json.dumps([meta.get("generation"), meta.get("labels"), meta.get("annotations")], sort_keys=True)
        if self.plan is None or self._mark != mark:
            found = read(Manifest(view.raw), units_per_node=settings.units_per_node)
            if self._wanted:
                self.ignored = ignored(self._wanted, found.job, has_launcher=self.has_launcher)
            self._wanted = found.job
            # A job's second plan has other keys, which nobody uses: its Secret is there already.
            self.plan = self._plan(found.job, generate(key_type), settings)
            self.warnings = (*found.warnings, *self.plan.warnings)
            self._mark = mark
        return self.plan

    def take_one_pair(self) -> None:
        """From now on plan for a Secret with one key pair and without a token."""
        self.has_secret = self.one_pair = True
        self._mark = ""

    def _plan(self, job: Job, material: SshMaterial, settings: Settings) -> Plan:
        if self.one_pair:
            # Pods that are there have this pair. What may be added has to get along with them.
            job = replace(job, annotations={**job.annotations, wishes.WORKER_SSH: "on", wishes.HOST_KEYS: "off"})
            settings = replace(settings, checkin_urls=())
        return plan(job, material, settings)
