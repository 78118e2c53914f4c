"""The caller's working directory: `mpiboot run` sends it to the launcher, which hands it on to the workers."""
