"""`mpiboot cc`: from a source to ranks, without an MPI on this machine."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from mpiboot.engines import compilation
from mpiboot.job import mpi
from mpiboot.job.errors import UserError
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., subprocess.CompletedProcess[str]]

CXX = """#include <iostream>
#include <mpi.h>
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::cout << "hello " + std::to_string(rank) + "\\n";
    MPI_Finalize();
}
"""
FORTRAN = """program hello
  use mpi
  integer :: rank, error
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  write (*, '(A,I0)') 'hello ', rank
  call MPI_Finalize(error)
end program
"""
OPEN_MPI, INTEL, MPICH = mpi.named("OpenMPI"), mpi.named("Intel"), mpi.named("MPICH")


@pytest.mark.parametrize(
    ("words", "wrapper"),
    [
        (["-O2", "pi.c", "-o", "pi", "-lm"], "mpicc"),
        (["src/a.cpp", "b.c"], "mpicxx"),
        (["-c", "a.C"], "mpicxx"),
        (["solver.F90", "-o", "solver"], "mpifort"),
        (["a.o", "b.o", "-o", "pi"], "mpicc"),
        (["-c", "a.f90", "b.c"], "mpifort"),
    ],
)
def test_the_sources_choose_the_compiler(words: list[str], wrapper: str) -> None:
    found = compilation.command(words, OPEN_MPI)
    assert (found[0], [word for word in found[1:] if word != compilation.OF_FORTRAN]) == (wrapper, words)


def test_a_program_is_itself_and_runtimes_differ_in_fortran() -> None:
    assert compilation.command(["make", "-j2"], OPEN_MPI) == ["make", "-j2"]
    assert compilation.command(["a.f90"], INTEL)[0] == "mpif90"
    for words, runtime, text in (
        ([], OPEN_MPI, "say what to compile"),
        (["a.cc", "b.f90"], OPEN_MPI, "in two steps"),
        (["a.f90"], MPICH, "MPICH has no Fortran here"),
    ):
        with pytest.raises(UserError, match=text):
            compilation.command(words, runtime)


@pytest.mark.parametrize(
    ("image", "found"),
    [
        ("mpiboot/openmpi", "mpiboot/openmpi-dev"),
        ("mpiboot/mpich:5.0.2", "mpiboot/mpich-dev:5.0.2"),
        ("mpiboot/openmpi-cuda:1", "mpiboot/openmpi-dev"),
        ("mpiboot/openmpi-dev", "mpiboot/openmpi-dev"),
        ("registry:5000/team/mpiboot-openmpi", "registry:5000/team/mpiboot-openmpi-dev"),
        ("registry:5000/team/solver:2", "registry:5000/team/solver-dev:2"),
    ],
)
def test_compilers_are_in_the_dev_image(image: str, found: str) -> None:
    assert compilation.image_with_compilers(image) == found


@pytest.fixture
def folder(tmp_path: Path, image: Callable[[str], str]) -> Path:
    assert image("openmpi-dev")
    shutil.copy(REPOSITORY / "examples" / "pi" / "pi.c", tmp_path)
    (tmp_path / "hello.cpp").write_text(CXX)
    (tmp_path / "hello.f90").write_text(FORTRAN)
    return tmp_path


def compiled(mpiboot: Run, folder: Path, *argv: str) -> None:
    done = mpiboot("cc", *argv, cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.usefixtures("nothing_left")
def test_from_a_source_to_ranks_in_two_commands(mpiboot: Run, folder: Path, name: str) -> None:
    compiled(mpiboot, folder, "-O2", "-Wall", "-Wshadow", "pi.c", "-o", "pi", "-lm")
    assert (folder / "pi").stat().st_uid == os.getuid()
    done = mpiboot("run", "-n", "4", "--workers", "2", "--name", name, "mpiboot/openmpi", "--", "./pi", "1000",
                   cwd=folder)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "pi is about 3.1415927" in done.stdout
    assert f"of 4 on {name}-worker-1" in done.stdout


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("source", ["hello.cpp", "hello.f90"])
def test_other_languages_run_too(mpiboot: Run, folder: Path, name: str, source: str) -> None:
    compiled(mpiboot, folder, "--engine", "docker", source, "-o", "hello")
    done = mpiboot("run", "-q", "-n", "2", "--workers", "2", "--name", name, "mpiboot/openmpi", "--", "./hello",
                   cwd=folder)  # fmt: skip
    assert sorted(done.stdout.splitlines()) == ["hello 0", "hello 1"], done.stderr


def test_the_compiler_s_errors_and_exit_codes_are_its_own(mpiboot: Run, folder: Path) -> None:
    (folder / "wrong.c").write_text("int main(void) { return x; }\n")
    done = mpiboot("cc", "wrong.c", cwd=folder)
    assert done.returncode == 1
    assert "wrong.c:1:" in done.stderr
    done = mpiboot("cc", "nosuchprogram", "-j2", cwd=folder)
    assert done.returncode == 127
    assert done.stderr == "mpiboot: the image mpiboot/openmpi-dev has no program nosuchprogram\n"
    assert mpiboot("cc", "make", "-v", cwd=folder).stdout.startswith("GNU Make")
    assert "cc " not in mpiboot("ps").stdout


def test_an_image_that_is_not_there_leads_to_the_command_that_builds_it(mpiboot: Run, folder: Path) -> None:
    done = mpiboot("cc", "--image", "mpiboot/openmpi:0.0.0", "pi.c", cwd=folder)
    assert done.returncode == 2
    assert done.stderr.endswith("is not on this engine; build it with: mpiboot images build openmpi-dev\n")
    done = mpiboot("cc", "--image", "no/such", "pi.c", cwd=folder)
    assert done.returncode == 2
    assert "the image no/such-dev with the compilers is not on this engine" in done.stderr
