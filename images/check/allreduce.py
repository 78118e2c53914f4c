"""Runs as a rank inside the image under check: sums a vector over all ranks and prints the result.

The check copies this file into the container, so it imports nothing of mpiboot and runs on any Python from 3.6 on. It
uses mpi4py if the image has it, else the MPI library itself through ctypes; `--which` only prints which, or `none`.
"""

import ctypes
import importlib.util
import os
import sys
from typing import Any, Tuple  # noqa: UP035 (old Pythons)

LENGTH = 1000  # more than one small message, and still fast


def library() -> Any:  # noqa: ANN401 (a CDLL or nothing, with its name)
    # Open MPI 4 and 5; MPICH and all that keep its binary interface, Intel among them.
    for name in ("libmpi.so.40", "libmpi.so.12"):
        try:
            return ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL), name
        except OSError:
            pass
    return None, "none"


def with_mpi4py() -> Tuple[int, int, float]:  # noqa: UP006
    import array

    from mpi4py import MPI

    world = MPI.COMM_WORLD
    mine = array.array("d", [(world.rank + 1.0) * i for i in range(LENGTH)])
    summed = array.array("d", [0.0] * LENGTH)
    world.Allreduce([mine, MPI.DOUBLE], [summed, MPI.DOUBLE], op=MPI.SUM)
    return world.rank, world.size, sum(summed)


def with_ctypes() -> Tuple[int, int, float]:  # noqa: UP006
    mpi, name = library()
    if name == "libmpi.so.40":  # handles are addresses of the library's own objects
        handles: Any = (
            ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, symbol)))
            for symbol in ("ompi_mpi_comm_world", "ompi_mpi_double", "ompi_mpi_op_sum")
        )
    else:  # handles are numbers, fixed by MPICH's binary interface
        handles = (ctypes.c_int(number) for number in (0x44000000, 0x4C00080B, 0x58000003))
    world, double, add = handles
    mpi.MPI_Init(None, None)
    rank, size = ctypes.c_int(), ctypes.c_int()
    mpi.MPI_Comm_rank(world, ctypes.byref(rank))
    mpi.MPI_Comm_size(world, ctypes.byref(size))
    mine = (ctypes.c_double * LENGTH)(*[(rank.value + 1.0) * i for i in range(LENGTH)])
    summed = (ctypes.c_double * LENGTH)()
    mpi.MPI_Allreduce(mine, summed, LENGTH, double, add, world)
    mpi.MPI_Finalize()
    return rank.value, size.value, sum(summed)


def main() -> None:
    # find_spec, because the import itself would start MPI.
    has_mpi4py = importlib.util.find_spec("mpi4py") is not None
    if sys.argv[1:] == ["--which"]:
        sys.stdout.write("mpi4py" if has_mpi4py else library()[1])
        return
    rank, size, checksum = with_mpi4py() if has_mpi4py else with_ctypes()
    # One write a line: the ranks share the launcher's output.
    os.write(1, f"mpiboot-sum rank={rank} size={size} sum={checksum:.0f}\n".encode())


if __name__ == "__main__":
    main()
