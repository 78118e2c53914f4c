"""A further MPI runtime is a further row of the table: everything else works with it as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.bootstrap.hosts import Entry
from mpiboot.bootstrap.run import environment, hostfile, mpirun, placement
from mpiboot.controller.install import crd
from mpiboot.images.build import built_version
from mpiboot.images.check import runtime as check
from mpiboot.job import mpi, quick
from mpiboot.job.plan.host_lists import read_hostfile
from mpiboot.job.plan.plan import plan
from mpiboot.job.read.manifest import Manifest
from mpiboot.job.read.read import read

if TYPE_CHECKING:
    from pathlib import Path

    from mpiboot.job.plan.ssh_material import SshMaterial

PROCS = mpi.HostfileForm("procs", " procs=")
MADE_UP = mpi.Runtime(
    "MadeUp", "Made-Up MPI", "madeup", "madeup-mpi",
    version=r"Made-Up MPI release (\S+)",
    starters=("madeuprun",),
    daemons={0: ("madeupd",), 3: ("madeup_daemon",)},
    hostfile=PROCS,
    hostfile_option="--hosts-from",
    v1alpha2="MadeUpMPI",
    image_words=("madeup",),
    fills_slots=True,
    hostfile_variables=("MADEUP_HOSTS",),
    ssh_variables=("MADEUP_SSH",),
    ssh_options=("MADEUP_SSH_OPTIONS",),
    ranks_a_host=("MADEUP_RANKS",),
    root_variables=("MADEUP_ROOT",),
    interface_variables=("MADEUP_IFACE",),
    flat=(("MADEUP_TREE", "off"),),
    flat_up_to=1,
    fixed=("MADEUP_HOSTS",),
)  # fmt: skip
SAYS = "Made-Up MPI release 3.1.4 (made up)\n"


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpi, "RUNTIMES", (*mpi.RUNTIMES, MADE_UP))


@pytest.fixture
def quick_run() -> dict[str, Any]:
    data = quick.manifest_for("pi", "me/madeup:3", ["madeuprun", "./pi"], 4, 2)
    assert isinstance(data, dict)
    return data


def values(entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {entry["name"]: entry.get("value") for entry in entries}


def test_a_quick_run_knows_the_runtime_by_its_images_name(quick_run: dict[str, Any]) -> None:
    assert quick_run["spec"]["mpiImplementation"] == "MadeUp"
    container = quick_run["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    assert container["command"] == ["madeuprun", "./pi"], "it starts ranks by itself"
    assert values(container["env"])["MADEUP_ROOT"] == "1"


def test_readers_take_each_versions_name_for_it(quick_run: dict[str, Any]) -> None:
    older = {name: value for name, value in quick_run["spec"].items() if name not in ("mpiImplementation", "runPolicy")}
    manifest = {**quick_run, "apiVersion": "kubeflow.org/v1alpha2", "spec": {**older, "mpiDistribution": "MadeUpMPI"}}
    assert read(Manifest(manifest)).job.runtime == read(Manifest(quick_run)).job.runtime == MADE_UP


def test_the_plan_has_its_hostfile_and_its_variables(quick_run: dict[str, Any], material: SshMaterial) -> None:
    made = plan(read(Manifest(quick_run)).job, material)
    text = made.config_map["data"]["hostfile"]
    assert text.splitlines()[0] == "pi-worker-0.pi.default.svc procs=2"
    assert read_hostfile(text) == (2, "MadeUp")
    env = values(made.launcher["spec"]["template"]["spec"]["containers"][0]["env"])
    assert {name: env[name] for name in env if name.startswith("MADEUP")} == {
        "MADEUP_HOSTS": "/etc/mpi/hostfile", "MADEUP_SSH_OPTIONS": "-o ConnectionAttempts=10", "MADEUP_RANKS": "2",
        "MADEUP_TREE": "off", "MADEUP_ROOT": "1",
    }  # fmt: skip


def test_a_launch_writes_its_hostfile_and_sets_its_variables() -> None:
    entries = hostfile.parse("a procs=2\nb slots=3\nc:4\n", "f")
    assert entries == (Entry("a", 2), Entry("b", 3), Entry("c", 4))
    assert hostfile.render(entries, PROCS) == "a procs=2\nb procs=3\nc procs=4\n"
    setting = environment.Setting(
        ssh_config="/run/c", shim="/run/ssh", hostfiles={"procs": "/run/p"}, hostfile="/run/p", given_hostfile="",
        live="", interface="eth0", first_address="10.0.0.1", ranks_a_host="2", root=True,
    )  # fmt: skip
    made = environment.build({}, setting, ())
    assert {name: made[name] for name in made if name.startswith("MADEUP")} == {
        "MADEUP_HOSTS": "/run/p", "MADEUP_SSH": "/run/ssh", "MADEUP_RANKS": "2", "MADEUP_IFACE": "eth0",
        "MADEUP_TREE": "off", "MADEUP_ROOT": "1",
    }  # fmt: skip


def test_its_program_is_found_and_watched(tmp_path: Path) -> None:
    program = tmp_path / "madeuprun"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert mpirun.path_of(["sh", "-c", "x"], str(tmp_path)) == str(program)
    slots = placement.Slots(0, 4, ("w0", "w1"))
    assert placement.at_the_end(["madeuprun", "./pi"], slots, 0, 0, fills_slots=MADE_UP.fills_slots)


def test_its_version_is_detected() -> None:
    found = mpi.identify(SAYS)
    assert found is not None
    assert (str(found), found.daemons) == ("Made-Up MPI 3.1.4", ("madeup_daemon",))
    assert mpi.Installed(MADE_UP, "2.9").daemons == ("madeupd",)
    assert built_version.version_in(SAYS) == "3.1.4"


def test_the_image_check_calls_it_with_its_hostfile_and_our_ssh() -> None:
    assert check.command(MADE_UP, 4) == "mpirun -n 4 --hosts-from /mpiboot-check/procs"
    assert check.hostfiles(["a", "b"], 2)["procs"] == "a procs=2\nb procs=2\n"
    made = check.environment("/c")
    assert (made["MADEUP_SSH_OPTIONS"], made["MADEUP_ROOT"]) == ("-F /c", "1")


def test_the_definition_of_the_resource_allows_it() -> None:
    fields = crd.spec_fields("v2beta1")["properties"]
    assert fields["mpiImplementation"]["enum"] == ["OpenMPI", "Intel", "MPICH", "MadeUp"]
    assert fields["mpiDistribution"]["description"].endswith("OpenMPI, IntelMPI, MPICH or MadeUpMPI.")
