"""What the launcher adds to an mpirun, so that input and output of its ranks are as users expect."""

from __future__ import annotations

import pytest

from mpiboot.bootstrap.run import mpirun
from mpiboot.job import mpi

OPEN_MPI_5 = mpi.Installed(mpi.DEFAULT, "5.0.11")


@pytest.mark.parametrize(
    ("line", "environ", "found"),
    [
        ("mpirun -n 2 ./a b", {}, "mpirun -n 2 ./a b"),
        ("mpirun -n 2 ./a b", {mpirun.AT_ONCE: "1"}, "mpirun --output :raw -n 2 ./a b"),
        ("mpirun -n 2 --tag-output ./a", {mpirun.AT_ONCE: "1"}, "mpirun -n 2 --tag-output ./a"),
        ("mpirun --bind-to none ./a", {mpirun.STDIN_HERE: "1"}, "mpirun --bind-to none ./a"),
        ("mpirun -n 2 --bind-to none ./a", {mpirun.STDIN_HERE: "1"}, "mpirun -n 2 --bind-to none ./a"),
        ("mpirun -n 1 ./a : -n 1 ./b", {mpirun.STDIN_HERE: "1"}, "mpirun -n 1 ./a : -n 1 ./b"),
        ("./a", {mpirun.STDIN_HERE: "1"}, "./a"),
    ],
)
def test_streams_are_changed_only_where_the_program_is_clear(line: str, environ: dict[str, str], found: str) -> None:
    assert mpirun.with_streams(line.split(), environ, OPEN_MPI_5, 7) == found.split()
    for other in (None, mpi.Installed(mpi.DEFAULT, "4.1.4"), mpi.Installed(mpi.named("MPICH"), "5.0.2")):
        assert mpirun.with_streams(line.split(), environ, other, 7) == line.split()


def test_rank_0_reads_the_launcher_s_own_stdin() -> None:
    line = ["mpirun", "-n", "2", "--tag-output", "./a", "b"]
    words = mpirun.with_streams(line, {mpirun.STDIN_HERE: "1"}, OPEN_MPI_5, 7)
    assert words[:6] == ["mpirun", "--stdin", "none", "-n", "2", "--tag-output"]
    assert (words[6], words[-3:]) == ("sh", ["/proc/7/fd/0", "./a", "b"])
