"""Where the ranks run, gathered by rank 0.

mpiboot run -n 4 --workers 2 mpiboot/openmpi -- python3 examples/mpi4py/hello.py
"""

import socket

from mpi4py import MPI

world = MPI.COMM_WORLD
places = world.gather(socket.gethostname())
if places is not None:
    for rank, host in enumerate(places):
        print(f"rank {rank} of {world.size} on {host}")
