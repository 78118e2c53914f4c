"""What the operator remembers of a job between two looks. A restart may lose all of it: it only saves work."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mpiboot.controller.dead_workers import Losses
from mpiboot.controller.deadline import Stopwatch
from mpiboot.controller.dns_ready import DnsNames
from mpiboot.job import job_annotations
from mpiboot.job.check.advice import advice
from mpiboot.job.plan.plan import plan
from mpiboot.job.problems import Problem
from mpiboot.job.read.fields import MOST_WORKERS_EVER
from mpiboot.job.read.manifest import Manifest
from mpiboot.job.read.read import read
from mpiboot.kube.projections import digest
from mpiboot.ssh.keys import generate

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.checkin.messages import Attempt
    from mpiboot.job.model import Job
    from mpiboot.job.plan.plan import Plan
    from mpiboot.job.plan.ssh_material import SshMaterial
    from mpiboot.job.settings import Settings
    from mpiboot.kube.api import Object
    from mpiboot.kube.projections import MpiJobView
    from mpiboot.ssh.keys import KeyType


HICCUP = 2.0  # seconds; a failure of the API server that lasts longer is reported
MOST_CRASHES = 8  # in a row; with the queue's pauses that takes 13 s
PARKED_FOR = 600.0  # seconds
LONGEST_READ = 2.0  # seconds of CPU time to read and plan one job: nothing else runs meanwhile
SECRET_HOLDS = 15.0  # seconds
REFRESH_AFTER = (0.5, 0.8, 1.5, 3.0, 6.0)  # seconds from one to the next


def annotation(name: str) -> Callable[[Job], object]:
    return lambda job: job.annotations.get(name)


# What pods are made from. The pods of a running job do not change.
FIXED: dict[str, Callable[[Job], object]] = {
    "spec.mpiReplicaSpecs.Worker.template": lambda job: job.worker and job.worker.template,
    "spec.mpiReplicaSpecs.Worker.restartPolicy": lambda job: job.worker and job.worker.restart_policy,
    "spec.sshAuthMountPath": lambda job: job.ssh_auth_mount_path,
    "spec.runLauncherAsWorker": lambda job: job.run_launcher_as_worker,
    "spec.mainContainer": lambda job: job.main_container,
    **{f"metadata.annotations[{name}]": annotation(name) for name in job_annotations.CHOICES},
}
# What the launcher's Job and its files are made from. Under WaitForWorkersReady they are made later.
LAUNCHERS: dict[str, Callable[[Job], object]] = {
    "spec.mpiReplicaSpecs.Launcher.template": lambda job: job.launcher.template,
    "spec.mpiReplicaSpecs.Launcher.restartPolicy": lambda job: job.launcher.restart_policy,
    "spec.slotsPerWorker": lambda job: job.slots_per_worker,
    "spec.mpiImplementation": lambda job: job.implementation,
    "spec.launcherCreationPolicy": lambda job: job.launcher_creation_policy,
    "spec.runPolicy.activeDeadlineSeconds": lambda job: job.run_policy.active_deadline_seconds,
    "spec.runPolicy.backoffLimit": lambda job: job.run_policy.backoff_limit,
    **{f"metadata.annotations[{name}]": annotation(name) for name in job_annotations.VARIABLES},
}


def ignored(before: Job, after: Job, *, has_launcher: bool) -> tuple[str, ...]:
    """The changed fields that a running job ignores. A suspended job applies all of them when it resumes."""
    if before.run_policy.suspend or after.run_policy.suspend:
        return ()
    fields = {**LAUNCHERS, **FIXED} if has_launcher else FIXED
    return tuple(path for path, value in fields.items() if value(before) != value(after))


def over_the_limit(job: Job, most: int) -> tuple[Problem, ...]:
    """A warning about a running job that has more workers than the installation allows now."""
    if job.workers <= most:
        return ()
    message = f"has {job.workers} workers, and this installation allows {most} for new jobs: the job goes on"
    return (Problem("spec", message, None, "warning"),)


@dataclass
class Pace:
    """Limits something to once in `every` seconds."""

    every: float
    last: float = float("-inf")

    def wait(self) -> float:
        """Seconds until the next time; 0: now."""
        return max(0.0, self.last + self.every - time.monotonic())

    def went(self) -> None:
        self.last = time.monotonic()


@dataclass
class Failing:
    """Distinguishes a failure that lasts from one that is over at the next try."""

    since: float | None = None

    def lasts(self, now: float) -> bool:
        """Whether this failure, with those before it, lasts long enough to be reported."""
        if self.since is None:
            self.since = now
        return now - self.since >= HICCUP

    def over(self) -> None:
        self.since = None


@dataclass
class RefreshMarks:
    """Annotations that make a kubelet read a ConfigMap. It may read before it has received the change, so they change
    several times.
    """

    data: str = ""
    times: int = 0
    last: float = 0.0

    def mark(self, data: str, now: float) -> str:
        """The annotation of launchers with these data; empty for launchers that need none."""
        if data != self.data:
            self.data, self.times, self.last = data, 1, now
        elif self._open and now >= self._next:
            self.times, self.last = self.times + 1, now
        return data and f"{data}.{self.times}"

    def wait(self, now: float) -> float:
        """Seconds until the annotation changes again; 0: it does not."""
        return max(0.001, self._next - now) if self._open else 0.0

    @property
    def _open(self) -> bool:
        return bool(self.data) and self.times <= len(REFRESH_AFTER)

    @property
    def _next(self) -> float:
        return self.last + REFRESH_AFTER[self.times - 1]


class TooSlowError(Exception):
    """Reading or planning one job takes more time than the operator may spend on it."""


def check_time(began: float) -> None:
    """Raise TooSlowError if this thread has worked too long at a job since `began`, a time of `time.thread_time`."""
    if (spent := time.thread_time() - began) > LONGEST_READ:
        raise TooSlowError(f"it took {spent:.1f} s to read")


@dataclass
class Parked:
    """A job at which the operator failed several times: the operator leaves it alone until an edit, or for a while."""

    crashes: int = 0
    mark: str = ""
    until: float = float("-inf")

    def left(self, view: MpiJobView, now: float) -> float:
        """Seconds for which the operator still leaves the job alone; 0: it does not."""
        return max(0.0, self.until - now) if self.mark == mark_of(view) else 0.0

    def crashed(self, view: MpiJobView, now: float, *, times: int) -> bool:
        """Count failures; whether that is too many."""
        self.crashes += times
        if self.crashes < MOST_CRASHES:
            return False
        self.crashes, self.mark, self.until = 0, mark_of(view), now + PARKED_FOR
        return True

    def went_well(self) -> None:
        self.crashes = 0


def mark_of(view: MpiJobView) -> str:
    """A text that changes with every edit of a job, and not with its status."""
    meta = view.raw["metadata"]
    return json.dumps([meta.get("generation"), meta.get("labels"), meta.get("annotations")], sort_keys=True)


@dataclass
class KnownSecret:
    """What is known of a job's Secret, which the operator cannot watch: it may read single ones only."""

    there: bool = False
    keys: str = ""  # a digest
    keys_since: str = ""  # when the Secret with these keys was made
    checked: float = float("-inf")
    lost: bool = False  # since the last event about it

    def learn(self, found: Object, now: float) -> None:
        """The Secret as an answer of the API server shows it."""
        self.there, self.checked = True, now
        if (keys := digest(found.get("data") or {})) != self.keys:
            self.keys, self.keys_since = keys, found["metadata"].get("creationTimestamp", "")

    def wait(self, now: float) -> float:
        """Seconds until it has to be read again, while pods that need it do not run."""
        return max(0.0, self.checked + SECRET_HOLDS - now)


@dataclass
class Attempts:
    """Failed attempts of launchers that restart their command: those that the status does not count yet."""

    uncounted: list[str] = field(default_factory=list)
    _last: dict[str, int] = field(default_factory=dict)  # by launcher

    def add(self, attempt: Attempt) -> bool:
        if attempt.number <= self._last.get(attempt.launch, 0):
            return False
        self._last = {attempt.launch: attempt.number}
        self.uncounted.append(attempt.text)
        return True


@dataclass
class JobState:
    """The state of one job. `uid` distinguishes it from another job of the same name."""

    uid: str
    born: float = field(default_factory=time.monotonic)
    secret: KnownSecret = field(default_factory=KnownSecret)
    has_launcher: bool = False
    one_pair: bool = False  # another operator made the Secret, and this operator took the job over
    # What events have reported, so that each is sent once.
    reported_warnings: frozenset[Problem] = frozenset()
    reported_dead: frozenset[str] = frozenset()  # uids
    rejected: str = ""
    resent: bool = False  # the events that an earlier process may not have sent
    status: Pace = field(default_factory=lambda: Pace(1.0))
    hosts: Pace = field(default_factory=lambda: Pace(0.5))
    refresh_marks: RefreshMarks = field(default_factory=RefreshMarks)
    failing: Failing = field(default_factory=Failing)
    losses: Losses = field(default_factory=Losses)
    named: DnsNames = field(default_factory=DnsNames)
    attempts: Attempts = field(default_factory=Attempts)
    parked: Parked = field(default_factory=Parked)
    stopwatch: Stopwatch = field(default_factory=Stopwatch)
    plan: Plan | None = None
    ignored: tuple[str, ...] = ()  # fields whose latest change the running job ignores
    _material: SshMaterial | None = None
    _mark: str = ""  # of the manifest that `_wanted` was read from
    _wanted: Job | None = None  # as its manifest says; the plan's may differ
    _read_warnings: tuple[Problem, ...] = ()
    _planned: Job | None = None  # what `plan` was made for
    _warnings: tuple[Problem, ...] | None = None  # about `plan`, made when they are asked for

    def read(self, view: MpiJobView, settings: Settings, workers: Callable[[], int]) -> Job:
        """The job of the manifest, read again only after an edit. Raises ManifestError.

        `workers`: how many the job has already. The installation's limit does not end a job that runs.
        """
        mark = mark_of(view)
        if self._wanted is None or self._mark != mark:
            most = max(settings.max_workers, min(workers(), MOST_WORKERS_EVER))
            found = read(Manifest(view.raw), units_per_node=settings.units_per_node, max_workers=most)
            if self._wanted:
                self.ignored = ignored(self._wanted, found.job, has_launcher=self.has_launcher)
            self._wanted, self._mark = found.job, mark
            self._read_warnings = (*found.warnings, *over_the_limit(found.job, settings.max_workers))
        return self._wanted

    def look_at(self, view: MpiJobView, settings: Settings, key_type: KeyType, workers: Callable[[], int]) -> Plan:
        """The job's plan, made again only after an edit. Raises ManifestError; `plan` then stays as it was."""
        began = time.thread_time()
        job = self.read(view, settings, workers)
        if self.plan is None or self._planned is not job:
            # The same keys in each plan: if the Secret is deleted, the next one must fit the pods that exist.
            self._material = self._material or generate(key_type)
            made = self._plan(job, self._material, settings)
            # Each look makes the ConfigMap's files again, with the workers that exist then.
            self.plan = replace(made, config_map={**made.config_map, "data": {}})
            self._planned = job
            self._warnings = None
        check_time(began)
        return self.plan

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """The warnings about the manifest and its plan. Made after the job's objects: no pod waits for them."""
        if self._warnings is None:
            began = time.thread_time()
            self._warnings = (*self._read_warnings, *advice(self.plan.arrangement)) if self.plan else ()
            check_time(began)
        return self._warnings

    def take_one_pair(self) -> None:
        """From now on, plan for a Secret with one key pair and without a token."""
        self.secret.there = self.one_pair = True
        self._planned = None

    def rest(self) -> None:
        """Drop what a finished job does not need, its plan above all: a cluster may store thousands of such jobs."""
        fresh = JobState(self.uid, self.born)
        fresh.parked, fresh.failing, fresh.status = self.parked, self.failing, self.status
        fresh.stopwatch, fresh.resent = self.stopwatch, self.resent
        vars(self).update(vars(fresh))

    def _plan(self, job: Job, material: SshMaterial, settings: Settings) -> Plan:
        if self.one_pair:
            # The existing pods have this pair, and new pods must work with them.
            off = {job_annotations.WORKER_SSH: "on", job_annotations.HOST_KEYS: "off"}
            job = replace(job, annotations={**job.annotations, **off})
            settings = replace(settings, checkin_urls=())
        return plan(job, material, settings)
