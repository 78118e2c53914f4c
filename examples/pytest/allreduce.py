"""Each rank adds its number to the sum of all, and prints what it got."""

from mpi4py import MPI

print(MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank), flush=True)
