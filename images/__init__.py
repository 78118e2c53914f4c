"""The table of images, the builds of them, and the contract that MPI images must fulfil."""
