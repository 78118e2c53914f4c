"""Mistakes that guides warn of: the manifest is valid, and the job still does not do what its user means."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mpiboot.job import elastic, mpi, names, quick
from mpiboot.job.check.refused import template_path
from mpiboot.job.plan.environment import HOSTFILE
from mpiboot.job.problems import Problem
from mpiboot.job.template import has_command, run_as_user, split, words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mpiboot.job.arrangement import Arrangement, RoleArrangement
    from mpiboot.job.model import Job

HOME = re.compile(r"/home/([a-z_][a-z0-9_-]*)")
KUBEXEC = "kubexec.sh"


def traps(arrangement: Arrangement) -> Iterator[Problem]:
    job = arrangement.job
    yield from no_command(arrangement)
    yield from ranks(job, arrangement.launcher)
    yield from own_hosts(job, arrangement.launcher)
    if arrangement.worker:
        yield from images(job, arrangement.launcher, arrangement.worker)
    for name, role in (("Launcher", arrangement.launcher), ("Worker", arrangement.worker)):
        if role:
            yield from user(job, name, role)
            yield from old_agent(job, name, role)


def place(job: Job, name: str, role: RoleArrangement) -> str:
    """The path of a role's main container."""
    return f"{template_path(job, name)}.spec.containers[{role.position}]"


def split_words(container: Mapping[str, Any]) -> list[str]:
    """The words of a command, also of one that a shell gets as a whole."""
    return split(words(container))


def start(container: Mapping[str, Any]) -> list[str]:
    """The part of a launcher's command that starts ranks, from the starter on; empty if there is none."""
    given = split_words(container)
    starts = [quick.is_starter(word) and word != "mpiboot" for word in given]
    return given[starts.index(True) :] if any(starts) else []


def asked(container: Mapping[str, Any]) -> int | None:
    """The number of ranks that a launcher's command asks for, if it says so plainly."""
    given = start(container)
    # Between colons are several programs, each with a number of its own.
    return quick.own_count(given) if given and ":" not in given else None


def ranks(job: Job, launcher: RoleArrangement) -> Iterator[Problem]:
    number = asked(launcher.container)
    if number is None or not job.slots or elastic.of_job(job):
        return
    slots = "there is 1 slot" if job.slots == 1 else f"there are {job.slots} slots"
    where = place(job, "Launcher", launcher)
    if number > job.slots and not any("oversubscribe" in word.lower() for word in split_words(launcher.container)):
        yield warn(where, f"asks for {number} ranks, but {slots}: {job.hosts} x {job.slots_per_worker}")
    unused = (job.slots - number) // job.slots_per_worker
    if unused > 0:
        idle = f"{unused} of {job.hosts} hosts can go without a rank"
        many = "1 rank" if number == 1 else f"{number} ranks"
        yield warn(where, f"asks for {many}, and {slots} ({job.hosts} x {job.slots_per_worker}): {idle}")


def no_command(arrangement: Arrangement) -> Iterator[Problem]:
    launcher = arrangement.launcher
    if has_command(launcher.container):
        return
    where = place(arrangement.job, "Launcher", launcher)
    # An image that was looked into may be built on ours, with a command of its own.
    if launcher.own_image and launcher.image not in arrangement.settings.own_images:
        yield warn(where, "has no command, and mpiboot's images have none: add the command to run")
    elif "command" in launcher.container:
        yield warn(f"{where}.command", "is empty: the launcher runs the command of the image")


def own_hosts(job: Job, launcher: RoleArrangement) -> Iterator[Problem]:
    """Hosts that the command names itself. mpiboot already gives mpirun the job's hosts."""
    where = place(job, "Launcher", launcher)
    for option, value in quick.own_options(start(launcher.container)):
        if "$" in value:  # a shell's or Kubernetes' variable: it may hold anything
            continue
        if option in mpi.HOST_OPTIONS:
            pods = [*names.worker_hosts(job), names.launcher_host(job)]
            known = {"localhost", *pods, *(pod.partition(".")[0] for pod in pods)}
            others = [host for each in value.split(",") if (host := each.partition(":")[0]) not in known]
            if others:
                message = f"{option} names {others[0]!r}, which is not a host of this job: remove {option}"
                yield warn(where, f"{message}; mpiboot gives mpirun the job's hosts")
        elif option in mpi.HOSTFILE_OPTIONS and value != HOSTFILE:
            message = f"{option} names {value!r}, which is not the job's hostfile ({HOSTFILE}): remove {option}"
            yield warn(where, f"{message}; mpiboot gives mpirun the job's hosts")


def images(job: Job, launcher: RoleArrangement, worker: RoleArrangement) -> Iterator[Problem]:
    launchers, workers = launcher.container.get("image"), worker.container.get("image")
    if launchers and workers and launchers != workers:
        message = f"is {workers}, the launcher's is {launchers}: program and MPI must be the same in both"
        yield warn(f"{place(job, 'Worker', worker)}.image", message)


def user(job: Job, name: str, role: RoleArrangement) -> Iterator[Problem]:
    """The keys must be in the home of the user that runs SSH. Only mpiboot finds them anywhere."""
    path = f"{job.ssh_auth_mount_path}/"
    if role.own_image:
        return
    uid = run_as_user(role.template, role.container)
    if uid is not None and (uid == 0) != path.startswith("/root/"):
        who, home = ("root", "/root") if uid == 0 else (f"user {uid}", "its own home")
        message = f"runs as {who}, whose SSH looks for keys in {home}, not in {job.ssh_auth_mount_path}"
        yield warn(place(job, name, role), f"{message}: set spec.sshAuthMountPath to that home's .ssh")
    found, named = HOME.match(path), homes(role.container)
    others = sorted(named)
    if found and others and found[1] not in named:
        message = f"refers to /home/{others[0]}, but the SSH keys are in {job.ssh_auth_mount_path}"
        yield warn(place(job, name, role), f"{message}; check which user the container runs as")


def homes(container: Mapping[str, Any]) -> set[str]:
    """The users whose home directories appear in a container's command, working directory and environment."""
    given = [item for item in container.get("env") or () if isinstance(item, dict)]
    env = {str(item.get("name")): str(item.get("value")) for item in given}
    # Where data is mounted, and in other variables, /home may be anything.
    texts = [*split_words(container), str(container.get("workingDir")), env.get("HOME", "")]
    named = {env[name] for name in ("USER", "LOGNAME") if name in env}
    return {name for text in texts for name in HOME.findall(text)} | named


def old_agent(job: Job, name: str, role: RoleArrangement) -> Iterator[Problem]:
    container = role.container
    env = [str(item.get("value")) for item in container.get("env") or () if isinstance(item, dict)]
    if any(KUBEXEC in text for text in (*split_words(container), *env)):
        message = f"{KUBEXEC} does not exist any more: mpirun starts ranks by SSH; remove this setting"
        yield warn(place(job, name, role), message)


def warn(path: str, message: str) -> Problem:
    return Problem(path, message, None, "warning")
