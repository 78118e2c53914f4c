"""Mistakes that guides warn of: the job is well formed, and still not what its user means."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from mpiboot.job import elastic, pods, quick
from mpiboot.job.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mpiboot.job.model import Job, Replica
    from mpiboot.job.settings import Settings

SPECS = "spec.mpiReplicaSpecs"
HOME = re.compile(r"/home/([a-z_][a-z0-9_-]*)")
KUBEXEC = "kubexec.sh"


def traps(job: Job, settings: Settings) -> Iterator[Problem]:
    yield from ranks(job)
    yield from images(job)
    for role, replica in roles(job):
        yield from user(job, role, replica, settings)
        yield from old_agent(job, role, replica)


def roles(job: Job) -> list[tuple[str, Replica]]:
    return [("Launcher", job.launcher), *([("Worker", job.worker)] if job.worker else [])]


def place(job: Job, role: str, replica: Replica) -> str:
    """The path of a role's main container. v1alpha1 has one template for both."""
    above = "spec" if job.dialect == "v1alpha1" else f"{SPECS}.{role}"
    return f"{above}.template.spec.containers[{pods.main_index(replica.template, job.main_container)}]"


def words_of(container: Mapping[str, Any]) -> list[str]:
    """The words of a command, also of one that a shell gets as a whole."""
    given = (*(container.get("command") or ()), *(container.get("args") or ()))
    return [part.strip("'\";") for word in given for part in str(word).split()]


def asked(container: Mapping[str, Any]) -> int | None:
    """The number of ranks that a launcher's command asks for, if it says so plainly."""
    words = words_of(container)
    starts = [PurePosixPath(word).name in quick.STARTERS and word != "mpiboot" for word in words]
    if not any(starts) or ":" in words:  # between colons are several programs, each with a number of its own
        return None
    return quick.own_count(words[starts.index(True) :])


def ranks(job: Job) -> Iterator[Problem]:
    container = pods.main_container(job.launcher.template, job.main_container)
    number = asked(container)
    if number is None or not job.slots or elastic.of_job(job):
        return
    slots = "there is 1 slot" if job.slots == 1 else f"there are {job.slots} slots"
    where = place(job, "Launcher", job.launcher)
    if number > job.slots and not any("oversubscribe" in word.lower() for word in words_of(container)):
        yield warn(where, f"asks for {number} ranks, but {slots}: {job.hosts} x {job.slots_per_worker}")
    unused = (job.slots - number) // job.slots_per_worker
    if unused > 0:
        idle = f"{unused} of {job.hosts} hosts can go without a rank"
        many = "1 rank" if number == 1 else f"{number} ranks"
        yield warn(where, f"asks for {many}, and {slots} ({job.hosts} x {job.slots_per_worker}): {idle}")


def images(job: Job) -> Iterator[Problem]:
    if job.worker is None:
        return
    launcher, worker = (pods.main_container(each.template, job.main_container).get("image") for _, each in roles(job))
    if launcher and worker and launcher != worker:
        message = f"is {worker}, the launcher's is {launcher}: program and MPI must be the same in both"
        yield warn(f"{place(job, 'Worker', job.worker)}.image", message)


def user(job: Job, role: str, replica: Replica, settings: Settings) -> Iterator[Problem]:
    """The keys must lie in the home of the user who runs SSH. mpiboot takes them from wherever they are."""
    path = f"{job.ssh_auth_mount_path}/"
    container = pods.main_container(replica.template, job.main_container)
    if settings.is_own(str(container.get("image"))):
        return
    uid = pods.run_as_user(replica.template, container)
    if uid is not None and (uid == 0) != path.startswith("/root/"):
        who, home = ("root", "/root") if uid == 0 else (f"user {uid}", "its own home")
        message = f"runs as {who}, whose SSH looks for keys in {home}, not in {job.ssh_auth_mount_path}"
        yield warn(place(job, role, replica), f"{message}: set spec.sshAuthMountPath to that home's .ssh")
    found, named = HOME.match(path), homes(container)
    others = sorted(named)
    if found and others and found[1] not in named:
        message = f"speaks of /home/{others[0]}, but the SSH keys are in {job.ssh_auth_mount_path}: is that its user?"
        yield warn(place(job, role, replica), message)


def homes(container: Mapping[str, Any]) -> set[str]:
    """The users whose homes a container's own settings name."""
    given = [item for item in container.get("env") or () if isinstance(item, dict)]
    env = {str(item.get("name")): str(item.get("value")) for item in given}
    # Where data is mounted, and in other variables, /home may be anything.
    texts = [*words_of(container), str(container.get("workingDir")), env.get("HOME", "")]
    named = {env[name] for name in ("USER", "LOGNAME") if name in env}
    return {name for text in texts for name in HOME.findall(text)} | named


def old_agent(job: Job, role: str, replica: Replica) -> Iterator[Problem]:
    container = pods.main_container(replica.template, job.main_container)
    env = [str(item.get("value")) for item in container.get("env") or () if isinstance(item, dict)]
    if any(KUBEXEC in text for text in (*words_of(container), *env)):
        message = f"there is no {KUBEXEC} any more: ranks are started by SSH; leave that setting out"
        yield warn(place(job, role, replica), message)


def warn(path: str, message: str) -> Problem:
    return Problem(path, message, None, "warning")
