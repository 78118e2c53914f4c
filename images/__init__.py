"""The matrix of images, their builds, and the contract that any MPI image is checked by."""
