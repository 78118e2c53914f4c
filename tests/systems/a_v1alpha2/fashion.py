# ruff: noqa: T201 - a program that ranks run
"""In place of the guide's training: ranks that meet at every step; with `wait`, until the test has checked them."""

import socket
import sys
import time
from pathlib import Path

from mpi4py import MPI

world = MPI.COMM_WORLD
print(f"rank {world.rank} of {world.size} on {socket.gethostname()}", flush=True)
step, last = 0, "wait" not in sys.argv
while not last:
    step += 1
    if world.rank == 0:
        print(f"step {step}", flush=True)
        time.sleep(0.2)
        last = Path("/tmp/looked").exists()
    last = world.bcast(last)
total = world.allreduce(1)
if world.rank == 0:
    print(f"{total} ranks trained", flush=True)
