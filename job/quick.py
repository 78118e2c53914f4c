"""The manifest behind `mpiboot run -n 4 --workers 2 IMAGE -- ./program args`."""

from __future__ import annotations

from math import ceil
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from mpiboot.job import mpi
from mpiboot.job.errors import UserError
from mpiboot.job.model import OUR_USERS_SSH, ROOTS_SSH
from mpiboot.job.settings import Settings
from mpiboot.job.values import natural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


# `mpiboot launch` then lets mpirun show lines that have no end yet.
OUTPUT_AT_ONCE = "MPIBOOT_OUTPUT_AT_ONCE"
OTHER_STARTERS = ("horovodrun", "mpiboot")
# It starts ranks as well, but has options of its own, and takes the number of ranks from the hostfile.
DEEPSPEED = "deepspeed"
COUNT_OPTIONS = (*mpi.COUNT_OPTIONS, "--num-proc")
ONE_VALUE = (*COUNT_OPTIONS, *mpi.HOST_OPTIONS, *mpi.HOSTFILE_OPTIONS)
PAIR_OPTIONS = ("-mca", "--mca", "-gmca", "--gmca", "--prtemca", "--pmixmca", "-env", "-genv")


def manifest_for(
    name: str,
    image: str,
    command: Sequence[str],
    processes: int | None = None,
    workers: int = 1,
    *,
    namespace: str = "default",
    implementation: str | None = None,
    slots: int | None = None,
    env: Mapping[str, str] | None = None,
    ssh_auth_mount_path: str | None = None,
    settings: Settings | None = None,
    tag_output: bool = False,
    output_at_once: bool = False,
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
    runtime = mpi.named(implementation) if implementation else runtime_of(image)
    demand(not (tag_output and is_starter(command[0])), f"--tag-output: give {command[0]} such an option yourself")
    words = starting(command, ranks, fills=ranks == workers * each, tag=runtime.tag_output if tag_output else "")
    # A line that begins with its rank must be whole.
    at_once = {OUTPUT_AT_ONCE: "1"} if output_at_once and not tag_output and not is_starter(command[0]) else {}
    launcher = {
        "name": "launcher",
        "image": image,
        "command": [literal(word) for word in words],
        "env": variables({**mpi.root_may_run(), **at_once, **(env or {})}),
    }
    worker = {"name": "worker", "image": image, "env": variables(env or {})}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "slotsPerWorker": each,
            "mpiImplementation": runtime.name,
            "sshAuthMountPath": ssh_auth_mount_path or (OUR_USERS_SSH if own else ROOTS_SSH),
            # One program, one run: the user sees it fail and decides.
            "runPolicy": {"cleanPodPolicy": "All", "backoffLimit": 0},
            "mpiReplicaSpecs": {
                "Launcher": replica(1, launcher),
                "Worker": replica(workers, worker),
            },
        },
    }


def literal(word: str) -> str:
    """A word that Kubernetes passes on unchanged: it replaces $(NAME), and takes $$ for $."""
    return word.replace("$", "$$") if "$$" in word or "$(" in word else word


def variables(env: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in env.items()]


def replica(count: int, container: Mapping[str, Any]) -> dict[str, Any]:
    return {"replicas": count, "restartPolicy": "Never", "template": {"spec": {"containers": [container]}}}


def demand(good: bool, message: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not good:
        raise UserError(message)


def starting(command: Sequence[str], ranks: int, *, fills: bool, tag: str = "") -> list[str]:
    """The launcher's command. A starter without a number of ranks gets one, unless the slots alone give it."""
    starter = PurePosixPath(command[0]).name
    if starter == DEEPSPEED:
        return list(command)
    if not is_starter(command[0]):
        return ["mpirun", "-n", str(ranks), *([tag] if tag else []), *command]
    if starter == "mpiboot" or own_count(command) is not None or (fills and starter != "horovodrun"):
        return list(command)
    return [command[0], "-np" if starter == "horovodrun" else "-n", str(ranks), *command[1:]]


def own_count(command: Sequence[str]) -> int | None:
    """The number of ranks that a starter's own options ask for."""
    counts = (natural(value) for name, value in own_options(command) if name in COUNT_OPTIONS)
    return next((count for count in counts if count is not None), None)


def own_options(command: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The options of a starter, up to the program that it starts, each with the word that it takes or may take."""
    if not command or not is_starter(command[0]):
        return
    rest = list(command[1:])
    while rest and rest[0].startswith("-"):
        name, equals, joined = rest.pop(0).partition("=")
        yield name, joined if equals else "".join(rest[:1])
        if not equals:
            # Which other options take a value is not known; the program comes after them.
            del rest[: values_of(name, rest)]


def values_of(option: str, following: Sequence[str]) -> int:
    """How many of the following words belong to an option of a starter."""
    if option in PAIR_OPTIONS:
        return 2
    if option in ONE_VALUE:
        return 1
    return 1 if len(following) > 1 and not following[0].startswith("-") and following[1].startswith("-") else 0


def is_starter(word: str) -> bool:
    """Whether a program starts ranks by itself. Any other program is what each rank runs."""
    return PurePosixPath(word).name in (*mpi.starters(), *OTHER_STARTERS)


def runtime_of(image: str) -> mpi.Runtime:
    """What an image's name says about its runtime: `mpiboot/intel:1.0`. The launcher asks mpirun itself."""
    return mpi.in_image(PurePosixPath(image.partition("@")[0]).name)
