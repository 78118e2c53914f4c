"""A small MPI program with a result that can be checked: pi, as the area under 4 / (1 + x^2) between 0 and 1.

    mpirun -n 4 python -m mpiboot.demo [STEPS]

Every rank adds up its share of the strips. Rank 0 prints the hosts of all ranks and the sum. Exit code 1: it is wrong.
"""

from __future__ import annotations

import math
import socket
import sys

DEFAULT_STEPS = 1_000_000


def share(rank: int, size: int, steps: int) -> float:
    """The part of the area that rank `rank` of `size` adds up: every size-th strip."""
    width = 1.0 / steps
    return width * math.fsum(4.0 / (1.0 + ((strip + 0.5) * width) ** 2) for strip in range(rank, steps, size))


def main() -> int:
    """0 when the ranks together found pi."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_STEPS
    began = MPI.Wtime()
    pi = world.allreduce(share(world.rank, world.size, steps))
    took = MPI.Wtime() - began
    hosts = world.gather(socket.gethostname())
    if world.rank == 0:
        for rank, host in enumerate(hosts or []):
            print(f"rank {rank} of {world.size} on {host}")
        print(f"pi is {pi:.12f}, off by {abs(pi - math.pi):.1e}, from {steps} strips in {took:.2f} s", flush=True)
    return 0 if math.isclose(pi, math.pi, abs_tol=1e-6) else 1


if __name__ == "__main__":
    sys.exit(main())
