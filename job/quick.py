"""The manifest behind `mpiboot run -n 4 --workers 2 IMAGE -- ./program args`."""

from __future__ import annotations

import re
from math import ceil
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from mpiboot.job.errors import UserError
from mpiboot.job.model import ROOTS_SSH
from mpiboot.job.settings import Settings
from mpiboot.job.trust import OUR_USERS_SSH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpiboot.job.model import Implementation

# What starts ranks by itself. Anything else is a program that each rank runs, as after a plain `mpirun -n 4`.
STARTERS = ("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "horovodrun", "mpiboot")
COUNT_OPTIONS = ("-n", "-np", "--n", "--np", "-c", "--num-proc")
PAIR_OPTIONS = ("-mca", "--mca", "-gmca", "--gmca", "--prtemca", "--pmixmca", "-env", "-genv")
# In an image that runs as root mpirun would refuse to, though a container's root is what its user chose.
ROOT_MAY_RUN = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def manifest_for(
    name: str,
    image: str,
    command: Sequence[str],
    processes: int | None = None,
    workers: int = 1,
    *,
    namespace: str = "default",
    implementation: Implementation | None = None,
    slots: int | None = None,
    env: Mapping[str, str] | None = None,
    ssh_auth_mount_path: str | None = None,
    settings: Settings | None = None,
) -> Mapping[str, Any]:
    """A v2beta1 MPIJob that runs a program as so many ranks on so many workers.

    Without `processes` the command's own number counts, and without that there is one rank for each slot. Each worker
    gets slots enough that all ranks fit; where the workers do not divide the ranks the last ones have slots to spare.
    """
    if not command:
        raise UserError("no program to run: mpiboot run [OPTIONS] IMAGE -- PROGRAM [ARGS]")
    demand(workers >= 1, f"--workers must be >= 1, is {workers}")
    demand(processes is None or processes >= 1, f"-n must be >= 1, is {processes}")
    demand(slots is None or slots >= 1, f"--slots must be >= 1, is {slots}")
    ranks = processes or own_count(command) or workers * (slots or 1)
    each = slots or ceil(ranks / workers)
    too_few = f"-n {ranks} does not fit on {workers} workers with {slots} slots each: at most {workers * each}"
    demand(processes is None or ranks <= workers * each, too_few)
    own = (settings or Settings()).is_own(image)
    launcher = {
        "name": "launcher",
        "image": image,
        "command": starting(command, ranks, fills=ranks == workers * each),
        "env": variables({**ROOT_MAY_RUN, **(env or {})}),
    }
    worker = {"name": "worker", "image": image, "env": variables(env or {})}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "slotsPerWorker": each,
            "mpiImplementation": implementation or implementation_of(image),
            "sshAuthMountPath": ssh_auth_mount_path or (OUR_USERS_SSH if own else ROOTS_SSH),
            # One program, one run: who types it sees it fail and decides.
            "runPolicy": {"cleanPodPolicy": "All", "backoffLimit": 0},
            "mpiReplicaSpecs": {
                "Launcher": replica(1, launcher),
                "Worker": replica(workers, worker),
            },
        },
    }


def variables(env: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in env.items()]


def replica(count: int, container: Mapping[str, Any]) -> dict[str, Any]:
    return {"replicas": count, "restartPolicy": "Never", "template": {"spec": {"containers": [container]}}}


def demand(good: bool, message: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not good:
        raise UserError(message)


def starting(command: Sequence[str], ranks: int, *, fills: bool) -> list[str]:
    """The launcher's command. A starter without a number of its own gets ours where slots alone do not say it."""
    starter = PurePosixPath(command[0]).name
    if starter not in STARTERS:
        return ["mpirun", "-n", str(ranks), *command]
    if starter == "mpiboot" or own_count(command) is not None or (fills and starter != "horovodrun"):
        return list(command)
    return [command[0], "-np" if starter == "horovodrun" else "-n", str(ranks), *command[1:]]


def own_count(command: Sequence[str]) -> int | None:
    """The number of ranks that a starter's own options ask for."""
    if PurePosixPath(command[0]).name not in STARTERS:
        return None
    words = list(command[1:])
    while words and words[0].startswith("-"):
        name, _, joined = words.pop(0).partition("=")
        if name in COUNT_OPTIONS and (joined or words[0:1]) and (joined or words[0]).isdigit():
            return int(joined or words[0])
        # An option's values are not known to us, but the program comes after them: one word, or two for pairs.
        del words[: values_of(name, words)]
    return None


def values_of(option: str, following: Sequence[str]) -> int:
    """How many of the following words belong to an option of a starter."""
    if option in PAIR_OPTIONS:
        return 2
    return 1 if len(following) > 1 and not following[0].startswith("-") and following[1].startswith("-") else 0


def implementation_of(image: str) -> Implementation:
    """What an image's name says about its runtime: `mpiboot/intel:1.0`. The launcher finds out for itself anyhow."""
    name = PurePosixPath(image.partition("@")[0]).name
    if re.search("mpich", name):
        return "MPICH"
    return "Intel" if re.search("intel|impi|oneapi", name) else "OpenMPI"
