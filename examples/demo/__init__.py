"""A small MPI program with a result that can be checked: `mpirun -n 4 python -m mpiboot.demo`."""
