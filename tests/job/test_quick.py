"""The manifest behind `mpiboot run -n 4 --workers 2 IMAGE -- ./program args`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.job import mpi
from mpiboot.job.check.advice import advice
from mpiboot.job.errors import UserError
from mpiboot.job.plan.plan import plan
from mpiboot.job.quick import manifest_for
from mpiboot.job.read.manifest import Manifest
from mpiboot.job.read.read import read

if TYPE_CHECKING:
    from mpiboot.job.model import Job
    from mpiboot.job.plan.ssh_material import SshMaterial

IMAGE = "mpiboot/openmpi:latest"


def job(command: str, processes: int | None, workers: int, **options: Any) -> Job:  # noqa: ANN401
    """The job of a command line; its manifest must be flawless."""
    found = read(Manifest(manifest_for("pi", IMAGE, command.split(), processes, workers, **options)))
    assert found.warnings == ()
    return found.job


def command_of(found: Job) -> str:
    return " ".join(found.launcher.template["spec"]["containers"][0]["command"])


# command, -n, --workers -> slots a worker, what the launcher runs
SHAPES = {
    "even": ("./pi 3", 4, 2, 2, "mpirun -n 4 ./pi 3"),
    "one each": ("./pi", 2, 2, 1, "mpirun -n 2 ./pi"),
    "one worker": ("./pi", 8, 1, 8, "mpirun -n 8 ./pi"),
    "the workers do not divide the ranks": ("./pi", 5, 2, 3, "mpirun -n 5 ./pi"),
    "fewer ranks than workers": ("./pi", 1, 3, 1, "mpirun -n 1 ./pi"),
    "no number: a rank for each worker": ("python pi.py", None, 3, 1, "mpirun -n 3 python pi.py"),
    "a script is a program": ("bash -c x", 2, 2, 1, "mpirun -n 2 bash -c x"),
    "mpirun uses every slot by itself": ("mpirun ./pi", 4, 2, 2, "mpirun ./pi"),
    "mpirun where slots are more than ranks": ("mpirun ./pi", 5, 2, 3, "mpirun -n 5 ./pi"),
    "mpirun by its path": ("/opt/bin/mpirun ./pi", 5, 2, 3, "/opt/bin/mpirun -n 5 ./pi"),
    "mpiexec of Hydra": ("mpiexec.hydra ./pi", 3, 2, 2, "mpiexec.hydra -n 3 ./pi"),
    "mpirun with its own number": ("mpirun -np 6 ./pi", None, 2, 3, "mpirun -np 6 ./pi"),
    "both numbers": ("mpirun -n 3 ./pi", 4, 2, 2, "mpirun -n 3 ./pi"),
    "its own number after other options": (
        "mpirun --mca btl tcp --host a,b --bind-to none -np 6 ./pi", None, 2, 3,
        "mpirun --mca btl tcp --host a,b --bind-to none -np 6 ./pi",
    ),
    "a number with an equals sign": ("mpirun --np=6 ./pi", None, 3, 2, "mpirun --np=6 ./pi"),
    "the program's -n is not mpirun's": ("mpirun ./pi -n 6", 5, 2, 3, "mpirun -n 5 ./pi -n 6"),
    "an option at the end": ("mpirun -n", 4, 2, 2, "mpirun -n"),
    "horovodrun must have a number": ("horovodrun python t.py", 4, 2, 2, "horovodrun -np 4 python t.py"),
    "horovodrun with a number": ("horovodrun -np 4 python t.py", 4, 2, 2, "horovodrun -np 4 python t.py"),
    "mpiboot itself": ("mpiboot launch mpirun ./pi", 4, 2, 2, "mpiboot launch mpirun ./pi"),
}  # fmt: skip


@pytest.mark.parametrize(("command", "processes", "workers", "slots", "runs"), SHAPES.values(), ids=SHAPES)
def test_ranks_and_slots(command: str, processes: int | None, workers: int, slots: int, runs: str) -> None:
    found = job(command, processes, workers)
    assert (found.workers, found.slots_per_worker) == (workers, slots)
    assert command_of(found) == runs


def test_the_users_slots_hold_if_the_ranks_fit() -> None:
    found = job("./pi", 4, 2, slots=4)
    assert (found.slots_per_worker, command_of(found)) == (4, "mpirun -n 4 ./pi")
    assert command_of(job("./pi", None, 2, slots=4)) == "mpirun -n 8 ./pi"


BAD: dict[str, tuple[tuple[Any, ...], str]] = {
    "no program": (([], 4, 2), "no program to run: mpiboot run [OPTIONS] IMAGE -- PROGRAM [ARGS]"),
    "no workers": ((["a"], 4, 0), "--workers must be >= 1, is 0"),
    "no ranks": ((["a"], 0, 2), "-n must be >= 1, is 0"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(UserError) as error:
        manifest_for("pi", IMAGE, *arguments)
    assert str(error.value) == message


def test_ranks_that_do_not_fit() -> None:
    with pytest.raises(UserError) as error:
        job("./pi", 9, 2, slots=4)
    assert str(error.value) == "-n 9 does not fit on 2 workers with 4 slots each: at most 8"


RUNTIMES = {
    "mpiboot/openmpi:latest": "OpenMPI",
    "mpiboot/mpich:latest": "MPICH",
    "registry.example/mpiboot/intel:1": "Intel",
    "me/oneapi-hpc:2024": "Intel",
    "intelligence.example/app": "OpenMPI",
    "me/app@sha256:00mpich": "OpenMPI",
}


@pytest.mark.parametrize(("image", "implementation"), RUNTIMES.items())
def test_the_images_name_hints_at_the_runtime(image: str, implementation: str) -> None:
    assert manifest_for("pi", image, ["a"], 1)["spec"]["mpiImplementation"] == implementation
    chosen = manifest_for("pi", image, ["a"], 1, implementation="MPICH")
    assert chosen["spec"]["mpiImplementation"] == "MPICH"


def test_variables_reach_both_roles_and_root_may_run() -> None:
    found = job("./pi", 2, 2, env={"OMP_NUM_THREADS": "2"}, namespace="mine")
    assert found.namespace == "mine"
    assert found.worker is not None
    launcher, worker = (role.template["spec"]["containers"][0]["env"] for role in (found.launcher, found.worker))
    assert worker == [{"name": "OMP_NUM_THREADS", "value": "2"}]
    assert {entry["name"] for entry in launcher} == {
        "OMP_NUM_THREADS", *mpi.DEFAULT.root_variables,
    }  # fmt: skip


def test_a_failed_program_is_not_tried_again(material: SshMaterial) -> None:
    found = plan(job("./pi", 4, 2), material)
    assert found.launcher["spec"]["backoffLimit"] == 0
    assert found.launcher["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    assert found.arrangement.launch_mode == "in-place"
    assert found.job.ssh_auth_mount_path == "/home/mpiuser/.ssh"
    assert advice(found.arrangement) == ()


def test_a_foreign_image_gets_its_keys_where_root_looks() -> None:
    assert manifest_for("pi", "me/app", ["a"])["spec"]["sshAuthMountPath"] == "/root/.ssh"


def test_words_that_kubernetes_would_change_are_doubled() -> None:
    words = ["sh", "-c", "echo $$ $(hostname) $HOME", "$5"]
    found = manifest_for("pi", IMAGE, words)["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    assert found["command"][-4:] == ["sh", "-c", "echo $$$$ $$(hostname) $$HOME", "$5"]


@pytest.mark.parametrize(("image", "option"), [("openmpi", "--tag-output"), ("mpich", "-prepend-rank"),
                                               ("intel", "-prepend-rank")])  # fmt: skip
def test_each_runtime_has_an_option_that_names_the_rank(image: str, option: str) -> None:
    found = manifest_for("pi", f"mpiboot/{image}", ["./pi"], 2, tag_output=True, output_at_once=True)
    launcher = found["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    assert launcher["command"] == ["mpirun", "-n", "2", option, "./pi"]
    assert "MPIBOOT_OUTPUT_AT_ONCE" not in [each["name"] for each in launcher["env"]]
    with pytest.raises(UserError, match="give mpirun such an option yourself"):
        manifest_for("pi", IMAGE, ["mpirun", "./pi"], tag_output=True)
